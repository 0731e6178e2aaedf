package volume_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berthhq/berth/plugins/volume"
	"github.com/berthhq/berth/plugins/volume/volumepb"
)

var vfs string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "volume")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		vfs = filepath.Join(dir, "vfs")
		if out, err := exec.Command("go", "build", "-o", vfs, "./vfs").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build plugin: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

func checksum(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

func TestLaunch(t *testing.T) {
	t.Setenv("SECRET_OF_THE_HOST", "x")
	sockets := t.TempDir()
	c, err := volume.Launch(t.Context(), volume.Options{Path: vfs, SHA256: checksum(t, vfs), SocketDir: sockets})
	if err != nil {
		t.Fatal(err)
	}
	if c.Version() != 1 || c.Description.Backend != "vfs" {
		t.Errorf("version %d of %v", c.Version(), c.Description)
	}
	if err := c.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", c.Pid()))
	if err != nil || strings.Contains(string(env), "SECRET_OF_THE_HOST") {
		t.Errorf("the plugin sees the host's environment (%v)", err)
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := syscall.Kill(c.Pid(), 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process after Close: %v", err)
	}
	if left, err := os.ReadDir(sockets); err != nil || len(left) > 0 {
		t.Errorf("sockets left: %v %v", left, err)
	}
}

func TestLaunchRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		o        volume.Options
		checksum bool
	}{
		"wrong checksum":  {volume.Options{Path: vfs, SHA256: strings.Repeat("00", 32)}, true},
		"odd checksum":    {volume.Options{Path: vfs, SHA256: "abc"}, false},
		"no such program": {volume.Options{Path: vfs + "-missing"}, false},
		"no plugin":       {volume.Options{Path: "/bin/true"}, false},
		"hangs":           {volume.Options{Path: "/bin/cat", StartTimeout: 300 * time.Millisecond}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := volume.Launch(t.Context(), tc.o)
			if err == nil {
				t.Fatal(errors.Join(errors.New("launched"), c.Close()))
			}
			if errors.Is(err, volume.ErrChecksum) != tc.checksum {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestValidateDescription(t *testing.T) {
	good := func() *volumepb.DescribeResponse {
		return &volumepb.DescribeResponse{Vendor: "v", Backend: "b-1", Version: "1", OptionsSchema: `{"type":"object"}`}
	}
	if err := volume.ValidateDescription(good()); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*volumepb.DescribeResponse){
		"backend": func(d *volumepb.DescribeResponse) { d.Backend = "../x" },
		"vendor":  func(d *volumepb.DescribeResponse) { d.Vendor = "" },
		"version": func(d *volumepb.DescribeResponse) { d.Version = "" },
		"schema":  func(d *volumepb.DescribeResponse) { d.OptionsSchema = "[]" },
	} {
		d := good()
		spoil(d)
		if volume.ValidateDescription(d) == nil {
			t.Errorf("%s: accepted %v", name, d)
		}
	}
}

// Usage agrees with du(1) in difficult cases: holes, several names, links, directories with blocks.
func TestUsage(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for i := range 300 {
		if err := errors.Join(os.MkdirAll(in(fmt.Sprintf("d%d/e", i%7)), 0o755),
			os.WriteFile(in(fmt.Sprintf("d%d/e/f%d", i%7, i)), make([]byte, i*100), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(in("hole"), nil, 0o644), os.Truncate(in("hole"), 1<<30),
		os.Link(in("d1/e/f50"), in("again")), os.Symlink("/usr", in("link")), os.Symlink("d1", in("inner"))); err != nil {
		t.Fatal(err)
	}
	got, err := volume.Usage(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("du", "-s", "--block-size=1", dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	var want int64
	if _, err := fmt.Sscan(string(out), &want); err != nil {
		t.Fatal(err)
	}
	if got.Bytes != want || got.Files != 304 || got.Directories != 14 || !got.Exact {
		t.Errorf("usage %v, du reports %d", got, want)
	}
	if _, err := volume.Usage(context.Background(), in("link")); err == nil {
		t.Error("measured through a link")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := volume.Usage(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
