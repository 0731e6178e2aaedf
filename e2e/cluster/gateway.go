package cluster

import (
	"path/filepath"
	"syscall"
	"testing"
)

// Gateway is a gateway in a process of its own. Its apps are below apps.localhost at the port of HTTP.
type Gateway struct {
	*Process
	HTTP, SSH string // addresses
	ops       string
}

// Gateway starts a gateway, and ends it with the test. The addresses of apps contain the port of
// the first gateway, as behind a common name.
func (s *Spread) Gateway(t testing.TB, name string, first *Gateway) *Gateway {
	t.Helper()
	g := s.newGateway(t, name)
	named := g
	if first != nil {
		named = first
	}
	g.args = append(g.args, "--apps-url", "http://*.apps.localhost"+port(named.HTTP), "--models-url", g.Models())
	g.begin(t)
	return g
}

// GatewayOnPorts starts a gateway whose apps are on ports of ports.localhost, FIRST-LAST, at an
// address of this machine.
func (s *Spread) GatewayOnPorts(t testing.TB, name, address, ports string) *Gateway {
	t.Helper()
	g := s.newGateway(t, name)
	g.args = append(g.args, "--app-ports", address+":"+ports, "--app-ports-url", "http://ports.localhost")
	g.begin(t)
	return g
}

func (s *Spread) newGateway(t testing.TB, name string) *Gateway {
	t.Helper()
	var at [4]string
	for i := range at {
		var err error
		if at[i], err = freePort("tcp"); err != nil {
			t.Fatal(err)
		}
	}
	g := &Gateway{Process: s.process(name), HTTP: at[0], SSH: at[1], ops: at[3]}
	g.args = []string{"gateway", "--http", g.HTTP, "--ssh", g.SSH, "--cluster", at[2], "--metrics", g.ops,
		"--public-url", s.URL, "--secrets", filepath.Join(s.data, "secrets"), "--postgres", s.DSN(), "--redis", s.stores.Redis.URL(), "--etcd", s.stores.Etcd.Endpoint()}
	return g
}

// Models returns the base URL of the APIs of models at this gateway.
func (g *Gateway) Models() string { return "http://" + g.HTTP + "/v1" }

// begin starts the process, waits until it answers, and ends it with the test.
func (g *Gateway) begin(t testing.TB) {
	t.Helper()
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if g.runs() {
			if err := g.end(syscall.SIGINT); err != nil {
				t.Error(err)
			}
		}
	})
	one := Platform{URL: "http://" + g.ops}
	Eventually(t, g.Name()+" answers", func() bool { return one.answers(t.Context(), "/readyz") })
}

// Interrupt sends SIGINT.
func (x *Process) Interrupt() error { return x.end(syscall.SIGINT) }

// port returns the port of an address, with its colon.
func port(address string) string {
	for i := len(address) - 1; i >= 0; i-- {
		if address[i] == ':' {
			return address[i:]
		}
	}
	return ""
}
