// Package registrytest serves registries for tests.
package registrytest

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/berthhq/berth/internal/registry"
)

// Serve serves the registry in a directory until the end of the test, and returns it and its host. setup
// runs before.
func Serve(t testing.TB, dir string, setup ...func(*registry.Registry)) (*registry.Registry, string) {
	t.Helper()
	l, err := registry.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	r, err := registry.Open(filepath.Join(dir, "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range setup {
		f(r)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- r.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-served, r.Close()); err != nil {
			t.Error(err)
		}
	})
	return r, l.Addr().String()
}
