package stories

import (
	"strings"
	"testing"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

const mpiImage = "mpi:5.0"

// Two sessions of the image mpi have kernels on two agents each. The kernels of one session reach
// each other by SSH without a password or a question, and mpirun starts processes on both agents.
// The other session has another key and another network. When an agent or the server in a kernel is
// killed, all of this works again after a short time.
func TestSSHBetweenKernels(t *testing.T) {
	operator := operator(t)
	for _, node := range []string{"node-1", "node-2"} {
		if text := operator.Must("agent", "show", node); strings.Contains(text, "overlay: ") {
			t.Skipf("sessions over several agents: %s", text)
		}
	}
	platform.Offer(t, "mpi")
	group := group(t, operator, "ssh", []string{"node-1", "node-2"})
	u := platform.User(t)
	t.Cleanup(func() { endAll(t, u) })
	pair, strangers := wideOf(t, u, group, "2", mpiImage, "exec sleep 86400"), wideOf(t, u, group, "1", mpiImage, "exec sleep 86400")

	main, sub := pair.kernels[0], pair.kernels[1]
	main.prints(t, "sub1", "ssh sub1 hostname </dev/null")
	sub.prints(t, "main", "ssh main hostname </dev/null")
	main.prints(t, "main", "ssh main hostname </dev/null") // to itself, as mpirun does for a list of hosts
	main.prints(t, "payload", "echo payload >/tmp/x && scp -q /tmp/x sub1:/tmp/y && ssh sub1 cat /tmp/y")
	main.prints(t, "0", "ssh sub1 test -r /dev/null; echo $?")
	main.prints(t, "255", "ssh -o PubkeyAuthentication=no sub1 true 2>/dev/null; echo $?")
	main.prints(t, "255", "ssh -o StrictHostKeyChecking=yes -o BatchMode=yes -F none -p 2200 sub1 true 2>/dev/null; echo $?")
	main.prints(t, "400", "stat -c %a /opt/berth/cluster/id_ed25519")
	main.prints(t, "read-only", "touch /opt/berth/cluster/hostfile 2>/dev/null || echo read-only")
	apart(t, u, pair, strangers)

	mpi := main.run("cd /tmp && mpirun -n 4 sh -c 'echo $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE on $(hostname)' | sort")
	if want := "0 of 4 on main\n1 of 4 on main\n2 of 4 on sub1\n3 of 4 on sub1"; mpi != want {
		t.Errorf("mpirun prints %q, want %q", mpi, want)
	}
	// MPI passes messages between the machines.
	sum := main.run(`cd /tmp && cat >sum.py <<'END'
from mpi4py import MPI
world = MPI.COMM_WORLD
total = world.allreduce(world.rank)
if world.rank == 0: print(total, world.size)
END
scp -q sum.py sub1:/tmp/sum.py && mpirun -n 4 python3 sum.py`)
	if sum != "6 4" {
		t.Errorf("the sum over four ranks is %q, want %q", sum, "6 4")
	}

	// The server in a kernel is killed, and starts again.
	sub.run("pkill -9 -f 'runner peer[s]'; true")
	cluster.Eventually(t, "the server in sub1 is back", func() bool {
		out, code := u.ExecIn(pair.ID, main.id, "ssh -o ConnectTimeout=2 sub1 hostname </dev/null")
		return code == 0 && out == "sub1\n"
	})

	// An agent is killed while a command runs over SSH, and starts again.
	main.run("rm -f /tmp/out; nohup ssh sub1 'sleep 5; echo done' >/tmp/out 2>&1 </dev/null & true")
	first := platform.Agent(main.agent)
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	cluster.Eventually(t, "the agent is back", func() bool { return u.Try(pair.ID, main.id) == nil })
	cluster.Eventually(t, "the command over SSH has ended", func() bool {
		out, _ := u.ExecIn(pair.ID, main.id, "cat /tmp/out")
		return out == "done\n"
	})
	main.prints(t, "sub1", "ssh sub1 hostname </dev/null")
}

// apart checks that the kernels of one session cannot use the SSH servers of another one.
func apart(t *testing.T, u *cluster.User, pair, strangers spread) {
	t.Helper()
	main, other := pair.kernels[0], strangers.kernels[0]
	if a, b := main.run("cat /opt/berth/cluster/known_hosts"), other.run("cat /opt/berth/cluster/known_hosts"); a == b {
		t.Error("two sessions have the same keys")
	}
	for _, k := range pair.kernels {
		address := k.run("awk '$2 == \"" + k.hostname + "\" {print $1}' /etc/hosts")
		try := "ssh -F none -o StrictHostKeyChecking=no -o ConnectTimeout=3 -o BatchMode=yes -p 2200 -i /opt/berth/cluster/id_ed25519 " + address + " hostname"
		if out, code := u.ExecIn(strangers.ID, other.id, try); code == 0 {
			t.Errorf("%s of another session runs %q on %s", other.hostname, out, k.hostname)
		}
	}
	// A kernel in the network but without the key cannot log in either.
	if out, code := u.ExecIn(pair.ID, main.id, "ssh-keygen -q -t ed25519 -N '' -f /tmp/other && ssh -F none -o StrictHostKeyChecking=no -o BatchMode=yes -p 2200 -i /tmp/other sub1 hostname"); code == 0 {
		t.Errorf("another key logs in: %q", out)
	}
}

// prints runs a script in a kernel and checks its output.
func (k server) prints(t *testing.T, want, script string) {
	t.Helper()
	if out := k.run(script); out != want {
		t.Errorf("%s in %s prints %q, want %q", script, k.hostname, out, want)
	}
}

// A batch job runs the same command in each kernel. The command in main uses the other kernel at once,
// because commands start when all kernels have started.
func TestBatchJobWithMPI(t *testing.T) {
	operator := operator(t)
	platform.Offer(t, "mpi")
	group := group(t, operator, "mpijob", []string{"node-3"})
	u := platform.User(t)
	t.Cleanup(func() { endAll(t, u) })
	in := cluster.Batch(`test $BERTH_CLUSTER_ROLE = main || exec sleep 86400
exec mpirun -n 2 --map-by node sh -c 'echo rank $OMPI_COMM_WORLD_RANK on $(hostname)'`)
	in.Image, in.ResourceGroup, in.Kernels = mpiImage, group, new(2)
	in.Slots = cluster.Slots("cpu", "1", "mem", "256m")
	s := u.Run(in)
	u.Until(s.ID, "TERMINATED")
	mustContain(t, u.Shell().Must("session", "logs", s.ID), "rank 0 on main", "rank 1 on sub1")
}

// The containers of a user with their own UID run with it, although the image has no such user.
// OpenSSH's client and mpirun work there as well.
func TestSSHWithANumber(t *testing.T) {
	operator := operator(t)
	platform.Offer(t, "mpi")
	group := group(t, operator, "number", []string{"node-3"})
	u := platform.User(t)
	t.Cleanup(func() { endAll(t, u) })
	if _, err := platform.Admin(t).UpdateUser(t.Context(), client.UpdateUserInput{ID: u.ID, ContainerUID: new(4321)}); err != nil {
		t.Fatal(err)
	}
	in := cluster.Interactive()
	in.Image, in.ResourceGroup, in.Kernels = mpiImage, group, new(2)
	in.Slots = cluster.Slots("cpu", "1", "mem", "256m")
	s := u.Run(in)
	u.Until(s.ID, "RUNNING")
	cluster.Eventually(t, "main reaches sub1", func() bool {
		out, code := u.Exec(s.ID, "id -u && ssh sub1 'whoami; hostname' </dev/null")
		return code == 0 && out == "4321\nuser4321\nsub1\n"
	})
	out, code := u.Exec(s.ID, "mpirun -n 2 --map-by node hostname | sort")
	if out != "main\nsub1\n" || code != 0 {
		t.Errorf("mpirun prints %q, %d", out, code)
	}
}
