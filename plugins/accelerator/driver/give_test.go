package driver_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

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
		t.Errorf("a file that is no device: %v, %v", err, e)
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
