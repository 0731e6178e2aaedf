package runtimetest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berthhq/berth/agent/mount"
	"github.com/berthhq/berth/agent/runtime"
)

// remount makes a folder of a running container writable and read-only and removes it, also after
// the agent has restarted.
func (s Subject) remount(t *testing.T) {
	spec := s.spec(t, "sleep", "60")
	dirs := []string{t.TempDir(), t.TempDir()}
	for i, target := range []string{"/data", "/own"} {
		if err := os.WriteFile(filepath.Join(dirs[i], "file"), []byte("text"), 0o644); err != nil {
			t.Fatal(err)
		}
		options := []string{"rbind", "rprivate", "nosuid", "nodev"}
		if target == "/data" {
			options = append(options, "ro")
		}
		spec.Mounts = append(spec.Mounts, specs.Mount{Destination: target, Type: "bind", Source: dirs[i], Options: options})
		spec.Folders = append(spec.Folders, target)
	}
	c := s.start(t, spec)
	does := func(verb ...string) bool {
		t.Helper()
		var out bytes.Buffer
		p, err := c.Exec(deadline(t), runtime.ExecSpec{Command: append([]string{"/bin/prog"}, verb...), Stdout: &out, Stderr: &out})
		if err != nil {
			t.Fatal(err)
		}
		code, err := p.Wait(deadline(t))
		if err != nil {
			t.Fatal(err)
		}
		return code == 0
	}
	for _, step := range []struct {
		change                *mount.Change
		reads, writes         bool
		recreated, ownWritten bool
	}{
		{nil, true, false, false, true},
		{&mount.Change{Target: "/data"}, true, true, true, true},
		{&mount.Change{Target: "/data"}, true, true, false, true},
		{&mount.Change{Target: "/data", ReadOnly: true}, true, false, true, true},
		{&mount.Change{Target: "/own", ReadOnly: true}, true, false, false, false},
		{&mount.Change{Target: "/own"}, true, false, false, true},
		{&mount.Change{Target: "/data", Gone: true}, false, true, true, true},
		{&mount.Change{Target: "/data", Gone: true}, false, true, false, true},
		{&mount.Change{Target: "/data"}, false, true, false, true}, // a removed mount does not come back
	} {
		if step.recreated {
			list, err := s.Again(t).Containers(deadline(t))
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range list {
				if found.ID() == spec.ID {
					c = found
				}
			}
		}
		if step.change != nil {
			if err := c.Remount(deadline(t), []mount.Change{*step.change}); err != nil {
				t.Fatalf("%+v: %v", *step.change, err)
			}
		}
		if got := does("cat", "/data/file"); got != step.reads {
			t.Errorf("after %+v it reads: %t", step.change, got)
		}
		if got := does("write", "/data/new", "x"); got != step.writes {
			t.Errorf("after %+v it writes: %t", step.change, got)
		}
		if got := does("cat", "/own/file") && does("write", "/own/new", "x"); got != step.ownWritten {
			t.Errorf("after %+v it writes to the other folder: %t", step.change, got)
		}
	}
}
