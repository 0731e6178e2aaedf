package driver_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

func TestGive(t *testing.T) {
	h := driver.NewHost(&pb.Roots{}) // the host's own /dev has null and zero
	e := &pb.ContainerEdits{}
	if err := h.Give(e, "null", "zero", "null"); err != nil {
		t.Fatal(err)
	}
	if err := h.Give(e, "zero"); err != nil {
		t.Fatal(err)
	}
	if n := e.GetDeviceNodes(); len(n) != 2 || n[0].GetPath() != "/dev/null" || n[1].GetPath() != "/dev/zero" {
		t.Errorf("%v", n)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "card0"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := driver.NewHost(&pb.Roots{Dev: dir}).Give(e, "card0"); err == nil || len(e.GetDeviceNodes()) != 2 {
		t.Errorf("a file that is not a device: %v, %v", err, e)
	}
}

// A container gets the groups that own its device files, each once, and never group root.
func TestGiveGroups(t *testing.T) {
	dir := t.TempDir()
	for name, group := range map[string]int{"card0": 4242, "card1": 4242, "control": 0} {
		path := filepath.Join(dir, name)
		if err := unix.Mknod(path, unix.S_IFCHR|0o660, int(unix.Mkdev(1, 3))); errors.Is(err, unix.EPERM) {
			t.Skip("only root makes device files")
		} else if err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, 0, group); err != nil {
			t.Fatal(err)
		}
	}
	e := &pb.ContainerEdits{}
	if err := driver.NewHost(&pb.Roots{Dev: dir}).Give(e, "card0", "card1", "control"); err != nil {
		t.Fatal(err)
	}
	if got := e.GetAdditionalGids(); !slices.Equal(got, []uint32{4242}) {
		t.Errorf("groups %v", got)
	}
}

func TestInOrder(t *testing.T) {
	var grants []accelerator.Grant
	for _, n := range []string{"10", "9", "x", "1"} {
		grants = append(grants, accelerator.Grant{Device: &pb.Device{Id: "gpu" + n, Attributes: map[string]string{"index": n}}})
	}
	var got []string
	for _, g := range driver.InOrder(grants, "index") {
		got = append(got, g.Device.GetId())
	}
	if !slices.Equal(got, []string{"gpux", "gpu1", "gpu9", "gpu10"}) || grants[0].Device.GetId() != "gpu10" {
		t.Errorf("%v", got)
	}
}
