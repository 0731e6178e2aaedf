package sshd

import (
	"os"
	"strings"
	"testing"
)

// The sockets of clients' agents are in memory that only this container has, regardless of TMPDIR.
// A folder there can be mounted in other containers whose processes run as the same user.
func TestSocketsAreNotInFolders(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	d := &scratch{}
	defer d.remove()
	path, err := d.dir()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(path, "/dev/shm/") {
		t.Errorf("sockets are in %s", path)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("the directory has mode %v, %v", st.Mode(), err)
	}
}
