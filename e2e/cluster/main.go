package cluster

import (
	"errors"
	"fmt"
	"os"
	"testing"
)

// Main runs a package's tests on one shared platform, from TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(cluster.Main(m, cluster.Options{}, &platform)) }
func Main(m *testing.M, opt Options, shared **Platform) int {
	return share(m, func() (stoppable, error) {
		p, err := New(opt)
		if err != nil {
			return nil, err
		}
		if err := p.Start("--stop-sessions"); err != nil {
			return nil, fmt.Errorf("%w\n%s", err, p.log.Tail(80))
		}
		*shared = p
		return p, nil
	})
}

// MainSpread is Main with managers and agents in separate processes.
func MainSpread(m *testing.M, opt SpreadOptions, shared **Spread) int {
	return share(m, func() (stoppable, error) {
		s, err := StartSpread(opt)
		*shared = s
		return s, err
	})
}

// Start runs a platform for one test, with the same checks at the end as Main.
func Start(t testing.TB, opt Options, flags ...string) *Platform {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("containers, networks and mounts need root")
	}
	p, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(append(flags, "--stop-sessions")...); err != nil {
		t.Fatalf("start platform: %v\n%s", errors.Join(err, p.remove(err)), p.log.Tail(80))
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("stop platform: %v\n%s", err, p.log.Tail(80))
		}
	})
	return p
}

type stoppable interface {
	Close() error
	Tail(lines int) string
}

func share(m *testing.M, start func() (stoppable, error)) int {
	if os.Geteuid() != 0 {
		fmt.Println("skipped: containers, networks and mounts need root")
		return 0
	}
	p, err := start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "start platform:", err)
		return 1
	}
	code := m.Run()
	if err := p.Close(); err != nil {
		fmt.Fprintf(os.Stderr, "FAIL: stop platform: %v\n%s\n", err, p.Tail(80))
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
