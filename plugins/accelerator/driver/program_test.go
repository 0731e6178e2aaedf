package driver_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/testenv/wait"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// asked returns a machine with the program acme-smi. It records its runs and exits once a file "go"
// exists.
func asked(t *testing.T, does string) (h *driver.Host, runs func() int, let func()) {
	t.Helper()
	dir := tree(t, map[string]string{"acme-smi": "#!/bin/sh\ncd $(dirname $0)\necho run $* >>runs\nwhile [ ! -e go ]; do sleep 0.01; done\n" + does})
	runs = func() int {
		text, err := os.ReadFile(filepath.Join(dir, "runs"))
		if err != nil {
			return 0
		}
		return strings.Count(string(text), "run")
	}
	let = func() {
		if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	return driver.NewHost(&pb.Roots{Path: []string{dir}}), runs, let
}

// begun waits until the program runs.
func begun(t *testing.T, runs func() int) {
	t.Helper()
	wait.Until(t, "the program runs", func() bool { return runs() != 0 })
}

func TestWhoAsksTheSameSharesTheAnswer(t *testing.T) {
	h, runs, let := asked(t, `echo '{"n": 7}'`)
	h.Fresh = time.Hour
	// The first caller leaves before the program has finished.
	first, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { _, err := h.Ask(first, "acme-smi", "-q"); left <- err }()
	begun(t, runs)
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("a caller whose context ended got %v", err)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			var v struct{ N int }
			if err := h.AskJSON(t.Context(), &v, "acme-smi", "-q"); err != nil || v.N != 7 {
				t.Errorf("%v, %v", v, err)
			}
		})
	}
	let()
	all.Wait()
	if n := runs(); n != 1 {
		t.Errorf("%d runs of 21 that asked", n)
	}
	if _, err := h.Ask(t.Context(), "acme-smi", "-l"); err != nil || runs() != 2 {
		t.Errorf("another question: %v, %d runs", err, runs())
	}
	h.Fresh = 0
	if _, err := h.Ask(t.Context(), "acme-smi", "-l"); err != nil || runs() != 3 {
		t.Errorf("an old answer: %v, %d runs", err, runs())
	}
}

func TestFailuresAreSharedToo(t *testing.T) {
	h, runs, let := asked(t, "echo busy >&2; exit 3")
	h.Fresh = time.Hour
	let()
	for range 3 {
		if _, err := h.Ask(t.Context(), "acme-smi"); err == nil || !strings.Contains(err.Error(), "busy") {
			t.Error(err)
		}
	}
	if n := runs(); n != 1 {
		t.Errorf("%d runs", n)
	}
	if _, err := h.Ask(t.Context(), "other-smi"); !errors.Is(err, driver.ErrNoProgram) {
		t.Error(err)
	}
}

// A program that hangs is killed and started again.
func TestHungProgramsAreAskedAgain(t *testing.T) {
	h, runs, let := asked(t, "echo ok")
	h.Fresh = 0
	if _, err := h.Ask(t.Context(), "acme-smi"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("hung: %v", err)
	}
	let()
	if out, err := h.Ask(t.Context(), "acme-smi"); string(out) != "ok\n" || err != nil || runs() != 2 {
		t.Errorf("%q, %v, %d runs", out, err, runs())
	}
}
