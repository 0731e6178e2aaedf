package vmtest

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/containerd/errdefs"
)

// Product is a real product that the tests of a process share. The first test that needs it starts
// it.
type Product[C io.Closer] struct {
	Make func(context.Context) (C, error)
	once sync.Once
	made C
	err  error
}

// Main runs the tests of a package and closes the product. Call it from TestMain.
func (p *Product[C]) Main(m *testing.M) {
	code := m.Run()
	asked := true
	p.once.Do(func() { asked = false })
	if asked && p.err == nil {
		if err := p.made.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// Get returns the product, or skips the test with the reason if it is not available.
func (p *Product[C]) Get(t *testing.T) C {
	t.Helper()
	if testing.Short() {
		t.Skip("a whole product takes a while")
	}
	p.once.Do(func() { p.made, p.err = p.Make(context.Background()) })
	if errdefs.IsUnavailable(p.err) && os.Getenv(Required) == "" {
		t.Skip(p.err)
	}
	if p.err != nil {
		t.Fatal(p.err)
	}
	return p.made
}

// Program builds the program of a Go package until the end of the test.
func Program(t *testing.T, name, pkg string) string {
	t.Helper()
	dir := t.TempDir()
	build(t, dir, map[string]string{name: pkg})
	return filepath.Join(dir, name)
}
