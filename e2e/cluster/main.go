package cluster

import (
	"fmt"
	"os"
	"testing"
)

// Main runs a package's tests on one platform that they share, from TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(cluster.Main(m, cluster.Options{}, &platform)) }
func Main(m *testing.M, opt Options, shared **Platform) int {
	if os.Geteuid() != 0 {
		fmt.Println("skipped: containers, networks and mounts need root")
		return 0
	}
	p, err := New(opt)
	if err != nil {
		fmt.Fprintln(os.Stderr, "prepare platform:", err)
		return 1
	}
	if err := p.Start("--stop-sessions"); err != nil {
		fmt.Fprintf(os.Stderr, "start platform: %v\n%s\n", err, p.log.Tail(80))
		return 1
	}
	*shared = p
	code := m.Run()
	if err := p.Close(); err != nil {
		fmt.Fprintf(os.Stderr, "FAIL: stop platform: %v\n%s\n", err, p.log.Tail(80))
		return max(code, 1)
	}
	return code
}

// Watch shows the server's log of this test if the test fails.
func (p *Platform) Watch(t testing.TB) {
	t.Helper()
	from := p.log.Len()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the server's log:\n%s", lastLines(p.log.From(from), 60))
		}
	})
}
