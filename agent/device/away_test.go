package device

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/testenv/wait"
)

// While a plugin process cannot be restarted, its devices are not allocated to new kernels. They
// are available again when it returns.
func TestDevicesOfAPluginThatIsAway(t *testing.T) {
	mock, err := buildMock()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(mock)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		harm  func(path string) error // changes the program before it is started again
		comes bool                    // the plugin returns once its program is restored
	}{
		"its program was removed": {os.Remove, false},
		"its program ends":        {func(path string) error { return replace(path, []byte("#!/bin/false\n")) }, true},
		"its program is broken":   {func(path string) error { return replace(path, program[:len(program)/2]) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "bd") // short, because it contains a socket
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "mock")
			if err := replace(path, program); err != nil {
				t.Fatal(err)
			}
			m, err := New(Config{
				Dir: dir, Node: "n", Version: "test", Incarnation: "1", Logger: slog.New(slog.DiscardHandler),
				Plugins: []PluginConfig{{Path: path, Force: true, ConfigJSON: []byte(`{"devices": 1}`)}},
			})
			if err != nil {
				t.Fatal(err)
			}
			m.awayTimeout = time.Millisecond
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() { m.Run(ctx); close(done) }()
			t.Cleanup(func() { cancel(); <-done; os.RemoveAll(dir) })
			m.AwaitReports(ctx, timeout)
			id := describe(m).Devices[2].Id
			if d := find(m, id); d == nil || !d.Allocatable {
				t.Fatalf("at first: %v", d)
			}
			if err := tt.harm(path); err != nil {
				t.Fatal(err)
			}
			kill(t, m)
			wait.Until(t, "nobody new gets the device, and why", func() bool {
				d := find(m, id)
				return d != nil && !d.Allocatable && len(d.RejectReasons) == 1 && strings.HasPrefix(d.RejectReasons[0], "plugin mock does not run: ")
			})
			for _, d := range describe(m).Devices[:2] {
				if !d.Allocatable {
					t.Errorf("%s is withheld too", d.Id)
				}
			}
			if !tt.comes {
				return
			}
			if err := replace(path, program); err != nil {
				t.Fatal(err)
			}
			wait.Until(t, "the device can be had again", func() bool {
				d := find(m, id)
				return d != nil && d.Allocatable && len(d.RejectReasons) == 0
			})
		})
	}
}

// replace replaces the file of a program that may be running.
func replace(path string, program []byte) error {
	next := path + ".next"
	if err := os.WriteFile(next, program, 0o755); err != nil {
		return err
	}
	return os.Rename(next, path)
}
