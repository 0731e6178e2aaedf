package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/conformance"
)

// TestArray starts a simulated product and stops it.
func TestArray(t *testing.T) {
	for _, args := range [][]string{{"--simulator"}, {"--simulator", "vfs"}, {"--simulator", "netapp", "more"}} {
		if asked, code := serve(t.Context(), args, io.Discard, io.Discard); !asked || code != 2 {
			t.Errorf("%v: %v, %d", args, asked, code)
		}
	}
	if asked, _ := serve(t.Context(), []string{"--plugins", "bin"}, io.Discard, io.Discard); asked {
		t.Error("other flags are taken")
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	read, write := io.Pipe()
	var errs bytes.Buffer
	done := make(chan int, 1)
	go func() {
		_, code := serve(ctx, []string{"--simulator", "netapp"}, write, &errs)
		write.Close()
		done <- code
	}()
	first := make([]byte, 4096)
	n, err := read.Read(first)
	if err != nil {
		if <-done; strings.Contains(errs.String(), "no btrfs image") {
			t.Skip(errs.String())
		}
		t.Fatal(errs.String())
	}
	go io.Copy(io.Discard, read)
	line, _, _ := strings.Cut(strings.TrimPrefix(string(first[:n]), "mounted at "), "\n")
	if _, err := os.Stat(line); err != nil {
		t.Error(err)
	}
	_, file, _ := strings.Cut(string(first[:n]), "options in ")
	file, _, _ = strings.Cut(file, "\n")
	if options, err := conformance.Object(file); err != nil || !strings.Contains(string(options), `"svm":"svm1"`) {
		t.Errorf("%s: %s (%v)", first[:n], options, err)
	}
	cancel()
	if code := <-done; code != 0 {
		t.Errorf("code %d: %s", code, &errs)
	}
	for _, left := range []string{line, file} {
		if _, err := os.Stat(left); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", left, err)
		}
	}
}
