package stories

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berthhq/berth/e2e/cluster"
)

// engine builds an image with the engine of tests.
func engine(t *testing.T, u *cluster.User, group string) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-o", filepath.Join(dir, "modelmock"), "../../tools/modelmock")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the engine: %v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte("FROM minimal:1\nCOPY modelmock /bin/modelmock\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := strings.TrimSpace(u.Shell().Must("image", "build", "engine:1", dir, "--project", u.Project, "--group", group, "--cpu", "0.5", "--mem", "512m"))
	return strings.Fields(out[strings.LastIndexByte(out, '\n')+1:])[0]
}

// A model is served while its revision changes, and while the leader, a gateway, a replica
// and an agent are killed: no request fails. A
// bad revision is rolled back by itself. Without requests there is no replica, and a request starts one. A key ends with its budget.
func TestServing(t *testing.T) {
	operator := operator(t)
	group := group(t, operator, "serving", nodes(), "--strategy", "dispersed")
	gateways := []*cluster.Gateway{platform.Gateway(t, "models-1", nil)}
	gateways = append(gateways, platform.Gateway(t, "models-2", gateways[0]))
	u := platform.User(t)
	t.Cleanup(func() { endAll(t, u) })
	berth := u.Shell()
	image := engine(t, u, group)
	berth.Must("deploy", "create", "mock", "--image", image, "--project", u.Project, "--group", group, "--cpu", "0.1", "--mem", "64m", "--port", "8000", "--health", "/health",
		"--interval", "1s", "--replicas", "2", "--max", "2", "--", "/bin/modelmock", "--listen", ":8000")
	t.Cleanup(func() { berth.Must("deploy", "rm", "mock", "--force", "--wait") })
	berth.Must("deploy", "wait", "mock")
	request := `{"model":"mock","messages":[{"role":"user","content":"one two three"}],"max_tokens":4}`
	load := &cluster.Traffic{Request: request, Key: cluster.ModelKey(berth.Must("deploy", "key", "create", "program", "--deployment", "mock"))}
	for _, g := range gateways {
		load.Addresses = append(load.Addresses, g.Models())
	}
	load.Begin()

	berth.Must("deploy", "update", "mock", "--env", "REVISION=2")
	berth.Must("deploy", "wait", "mock")
	leader := platform.Leader(t)
	if err := leader.Kill(); err != nil {
		t.Fatal(err)
	}
	berth.Must("deploy", "update", "mock", "--env", "REVISION=3")
	berth.Must("deploy", "wait", "mock")
	if err := leader.Start(); err != nil {
		t.Fatal(err)
	}
	if err := gateways[0].Kill(); err != nil {
		t.Fatal(err)
	}
	ended := replicas(t, u)[0]
	berth.Must("session", "rm", "--force", ended)
	cluster.Eventually(t, "the replica is replaced", func() bool {
		now := replicas(t, u)
		return len(now) == 2 && !slices.Contains(now, ended)
	})
	agent := platform.Agent(on(t, u, replicas(t, u)[0]))
	if err := agent.Kill(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Second) // requests meet the agent that is gone
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	berth.Must("deploy", "update", "mock", "--start-timeout", "1s", "--", "/bin/sleep", "600")
	if r := berth.Run("deploy", "wait", "mock"); r.Code == 0 || !strings.Contains(r.Stdout+r.Stderr, "rolled back") {
		t.Errorf("a revision that never answers: %+v", r)
	}
	load.End(t)

	mustContain(t, berth.Must("deploy", "events", "mock"), "rolled back")
	berth.Must("deploy", "scale", "mock", "--min", "0", "--zero-after", "10s")
	cluster.Eventually(t, "the deployment sleeps", func() bool { return strings.Contains(berth.Must("deploy", "ls"), "asleep") })
	small := cluster.ModelKey(berth.Must("deploy", "key", "create", "small", "--deployment", "mock", "--token-budget", "5"))
	woken := &cluster.Traffic{Request: request, Key: small, Addresses: load.Addresses[1:]}
	if err := woken.Once(0); err != nil {
		t.Errorf("a request to a deployment that sleeps: %v", err)
	}
	cluster.Eventually(t, "the budget of the key is used", func() bool {
		err := woken.Once(0)
		return err != nil && strings.Contains(err.Error(), "status 429") && strings.Contains(err.Error(), "insufficient_quota")
	})
}

// replicas returns the sessions of the replicas that are ready.
func replicas(t *testing.T, u *cluster.User) (sessions []string) {
	t.Helper()
	var got struct {
		Deployments struct {
			Edges []struct {
				Node struct {
					Replicas struct {
						Edges []struct {
							Node struct{ Session struct{ ID string } }
						}
					}
				}
			}
		}
	}
	u.Query(`{ deployments { edges { node { replicas(where: {phase: READY}) { edges { node { session { id } } } } } } } }`, nil, &got)
	for _, d := range got.Deployments.Edges {
		for _, r := range d.Node.Replicas.Edges {
			sessions = append(sessions, r.Node.Session.ID)
		}
	}
	return sessions
}
