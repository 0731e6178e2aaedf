package stories

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// Two sessions have kernels on the same two agents. The kernels of a session reach each other by
// name, in both directions, also with a lot of data. They do not reach the kernels of the other
// session. An agent that is killed and restarted does not interrupt them, and after their end
// nothing of their networks is left.
func TestKernelsOverAgents(t *testing.T) {
	operator := operator(t)
	for _, node := range []string{"node-1", "node-2"} {
		if text := operator.Must("agent", "show", node); strings.Contains(text, "overlay: ") {
			t.Skipf("sessions over several agents: %s", text)
		}
	}
	group := group(t, operator, "wide", []string{"node-1", "node-2"})
	u := platform.User(t)
	t.Cleanup(func() { endAll(t, u) })
	before := interfaces(t)
	pair, strangers := wide(t, u, group, "2"), wide(t, u, group, "1")

	if out, code := u.Exec(pair.ID, "echo $BERTH_CLUSTER_HOST $BERTH_CLUSTER_HOSTS $MASTER_ADDR; hostname"); out != "main main,sub1 main\nmain\n" || code != 0 {
		t.Errorf("the first kernel gets %q, %d", out, code)
	}
	pair.talk(t)
	pair.send(t)
	strangers.talk(t)
	for _, k := range pair.kernels {
		address := k.run("echo " + k.by())
		for _, s := range strangers.kernels {
			if out, code := u.ExecIn(strangers.ID, s.id, "nc -w 3 "+address+" 8000 </dev/null"); code == 0 {
				t.Errorf("%s of another session reaches %s at %s: %q", s.hostname, k.hostname, address, out)
			}
		}
	}

	first := platform.Agent("node-1")
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	for i, k := range pair.kernels { // a kernel on the lost agent cannot be reached through it
		if k.agent != first.Name() {
			pair.kernels[1-i].served(t, k)
		}
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	cluster.Eventually(t, "the agent is back", func() bool {
		return !slices.ContainsFunc(pair.kernels, func(k server) bool { return u.Try(pair.ID, k.id) != nil })
	})
	pair.talk(t)
	pair.send(t)
	strangers.talk(t)

	u.End(pair.ID)
	strangers.talk(t)
	u.End(strangers.ID)
	cluster.Eventually(t, "nothing of the networks is there", func() bool { return slices.Equal(interfaces(t), before) })
	once(t, operator)
}

// spread is a session with kernels on two agents.
type spread struct {
	*client.Session
	kernels []server
}

// server is a kernel that answers each connection with its name.
type server struct {
	id, hostname, agent string
	run                 func(script string) string // runs a script that must succeed, and returns its output without the final line break
}

// wide starts a session with a kernel on each of two agents. Each kernel requests so many
// accelerators that two kernels do not fit on one agent.
func wide(t *testing.T, u *cluster.User, group, accelerators string) spread {
	t.Helper()
	return wideOf(t, u, group, accelerators, "minimal:1", "nc -ll -p 8000 -e hostname & nc -ll -p 8001 -e cat /tmp/much & exec sleep 86400")
}

// wideOf is wide with another image and command.
func wideOf(t *testing.T, u *cluster.User, group, accelerators, image, script string) spread {
	t.Helper()
	in := cluster.Batch(script)
	in.Image = image
	in.ResourceGroup, in.Kernels = group, new(2)
	in.Slots = cluster.Slots("cpu", "0.2", "mem", "384m", "mock.shares", accelerators)
	s := spread{Session: u.Run(in)}
	u.Until(s.ID, "RUNNING")
	for _, k := range u.Show(s.ID).Kernels {
		s.kernels = append(s.kernels, server{k.ID, k.Hostname, k.Agent.Name, func(script string) string {
			t.Helper()
			out, code := u.ExecIn(s.ID, k.ID, script)
			if code != 0 {
				t.Fatalf("%s in %s: %q, %d", script, k.Hostname, out, code)
			}
			return strings.TrimSuffix(out, "\n")
		}})
	}
	slices.SortFunc(s.kernels, func(a, b server) int { return strings.Compare(a.hostname, b.hostname) })
	if len(s.kernels) != 2 || s.kernels[0].agent == s.kernels[1].agent {
		t.Fatalf("the kernels are %+v", s.kernels)
	}
	return s
}

// talk connects each kernel to every other one, and checks the names in the answers.
func (s spread) talk(t *testing.T) {
	t.Helper()
	for _, from := range s.kernels {
		for _, to := range s.kernels {
			to.served(t, from)
		}
	}
}

// by returns a shell expression for the address of a kernel. The static busybox of the image cannot
// resolve names, so the expression reads the hosts file.
func (k server) by() string { return "$(awk '$2 == \"" + k.hostname + "\" {print $1}' /etc/hosts)" }

func (k server) served(t *testing.T, to server) {
	t.Helper()
	// The other kernel may not listen yet.
	ask := fmt.Sprintf("for i in 1 2 3 4 5 6 7 8 9 10; do nc -w 10 %s 8000 </dev/null 2>/dev/null && break; sleep 1; done", k.by())
	if out := to.run(ask); out != k.hostname {
		t.Errorf("%s requests the name of %s: %q", to.hostname, k.hostname, out)
	}
}

// send transfers 100 MB in both directions.
func (s spread) send(t *testing.T) {
	t.Helper()
	for i, from := range s.kernels {
		to := s.kernels[1-i]
		sum := from.run("dd if=/dev/urandom of=/tmp/much bs=1M count=100 2>/dev/null && sha256sum </tmp/much")
		if got := to.run("nc -w 10 " + from.by() + " 8001 </dev/null | sha256sum"); got != sum {
			t.Errorf("100 MB from %s to %s arrive as %s, not %s", from.hostname, to.hostname, got, sum)
		}
		from.run("rm /tmp/much")
	}
}

// interfaces returns the network interfaces that agents have created.
func interfaces(t *testing.T) []string {
	t.Helper()
	list, err := platform.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return list
}
