package containerd

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAccount(t *testing.T) {
	t.Parallel()
	const root = "root:x:0:0:root:/root:/bin/sh\n"
	for name, c := range map[string]struct{ before, want string }{
		"no file":         {"", "work:x:4321:1234::/home/work:/bin/sh\n"},
		"without a user":  {root, root + "work:x:4321:1234::/home/work:/bin/sh\n"},
		"the same number": {root + "kim:x:4321:4321::/home/kim:/bin/sh\n", root + "kim:x:4321:4321::/home/kim:/bin/sh\n"},
		"the same name":   {"work:x:1000:1000::/home/work:/bin/sh", "work:x:1000:1000::/home/work:/bin/sh\nuser4321:x:4321:1234::/home/work:/bin/sh\n"},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "etc/passwd")
		if c.before != "" {
			if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(c.before), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		tree, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer tree.Close()
		if err := addAccount(tree, 4321, 1234, "/home/work"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, _ := os.ReadFile(file); string(got) != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A link of the image out of its root file system is not followed.
func TestAccountBehindALink(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "passwd")
	if err := os.WriteFile(outside, []byte("host\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "etc/passwd")); err != nil {
		t.Fatal(err)
	}
	tree, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	if err := addAccount(tree, 4321, 1234, "/home/work"); err == nil {
		t.Error("the link is followed")
	}
	if got, _ := os.ReadFile(outside); string(got) != "host\n" {
		t.Errorf("the file on the host is %q", got)
	}
}
