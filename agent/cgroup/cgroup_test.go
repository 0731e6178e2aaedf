package cgroup

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/agent/runtime"
)

// tree creates files below a temporary directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestStats(t *testing.T) {
	want := runtime.Stats{CPU: 1500 * time.Millisecond, Memory: 6000, Pids: 3, IORead: 4096, IOWrite: 512}
	first := map[string]string{
		"cpuacct/g/cpuacct.usage":                           "1500000000\n",
		"memory/g/memory.usage_in_bytes":                    "10000\n",
		"memory/g/memory.stat":                              "inactive_file 1\nhierarchical_memory_limit 5\ntotal_inactive_file 4000\n",
		"pids/g/pids.current":                               "3\n",
		"blkio/g/blkio.throttle.io_service_bytes_recursive": "8:0 Read 4000\n8:0 Write 512\n8:0 Total 4512\n8:16 Read 96\nTotal 4608\n",
	}
	second := map[string]string{
		"g/cpu.stat": "usage_usec 1500000\nuser_usec 1\n", "g/memory.current": "10000\n",
		"g/memory.stat": "anon 1\ninactive_file 4000\n", "g/pids.current": "3\n",
		"g/io.stat": "8:0 rbytes=4000 wbytes=512 rios=1 wios=1\n8:16 rbytes=96 wbytes=0\n",
	}
	for name, files := range map[string]map[string]string{
		"version 1": first,
		"version 2": second,
		"memory of version 2 with version 1": {
			"cpuacct/g/cpuacct.usage": "1500000000\n", "unified/g/cgroup.procs": "",
			"unified/g/memory.current": "10000\n", "unified/g/memory.stat": "inactive_file 4000\n",
			"pids/g/pids.current": "3\n", "unified/g/io.stat": "8:0 rbytes=4096 wbytes=512\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := Find(tree(t, files), "/g")
			if err != nil {
				t.Fatal(err)
			}
			got, err := g.Stats()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNotThere(t *testing.T) {
	if _, err := Find(tree(t, map[string]string{"cpuacct/other/cpuacct.usage": "1"}), "/g"); !errdefs.IsNotFound(err) {
		t.Errorf("no cgroup: %v", err)
	}
	root := tree(t, map[string]string{"g/cpu.stat": "usage_usec 5\n"})
	g, err := Find(root, "/g")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := g.Stats(); err != nil || got.CPU != 5*time.Microsecond {
		t.Errorf("only one controller: %v, %v", got, err)
	}
	if err := os.RemoveAll(filepath.Join(root, "g")); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Stats(); !errdefs.IsNotFound(err) {
		t.Errorf("removed meanwhile: %v", err)
	}
}
