package e2e

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// Root in a container is root on the machine. Users of the machine cannot reach a set-uid program
// of a container, or it gives them no rights.
func TestSetUIDProgramsOfSessions(t *testing.T) {
	u := platform.User(t)
	if _, err := u.CreateFolder(t.Context(), client.CreateVfolderInput{Name: "data"}); err != nil {
		t.Fatal(err)
	}
	berth := u.Shell()
	if r := berth.Run("folder", "put", "data", "/usr/bin/id"); r.Code != 0 {
		t.Fatalf("folder put: %+v", r)
	}
	in := cluster.Interactive()
	in.Mounts = []client.MountInput{{Vfolder: "data", Target: "/home/work/data"}}
	s := u.Run(in)
	defer u.End(s.ID)
	u.Until(s.ID, "RUNNING")
	script := "for at in data/armed ./armed /var/armed; do cp data/id $at && chmod 4755 $at || exit; done; echo secret > data/private"
	if out, code := u.Exec(s.ID, script); code != 0 {
		t.Fatalf("make set-uid programs: %s", out)
	}
	var programs []string
	err := filepath.WalkDir(platform.Data(), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "armed" && d.Type().IsRegular() {
			programs = append(programs, path)
		}
		return nil // files that are created or deleted meanwhile
	})
	if err != nil || len(programs) < 3 {
		t.Fatalf("set-uid programs on the machine: %q, %v; want those of folder, scratch directory and root file system", programs, err)
	}
	folder := ""
	for _, p := range programs {
		if out, err := nobody(p, "-u"); err == nil {
			t.Errorf("user nobody runs %s: %s", p, out)
		}
		if strings.HasPrefix(p, filepath.Join(platform.Data(), "volumes")) {
			folder = filepath.Dir(p)
		}
	}
	if out, err := nobody("cat", filepath.Join(folder, "private")); err == nil {
		t.Errorf("user nobody reads a folder: %q", out)
	}
	// An operator may have made the path accessible.
	for at := folder; at != platform.Data(); at = filepath.Dir(at) {
		st, err := os.Stat(at)
		if err == nil {
			err = os.Chmod(at, st.Mode()|0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.Chmod(at, st.Mode()) }()
	}
	if out, err := nobody(filepath.Join(folder, "armed"), "-u"); err != nil || out != "65534" {
		t.Errorf("a set-uid program of a session runs as %q, %v", out, err)
	}
}

// nobody runs a program as a user of the machine without rights.
func nobody(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
