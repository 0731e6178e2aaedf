package drivertest

import (
	"strings"
	"testing"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// Judged checks that a device is rejected for a reason, or is allocatable if the reason is empty.
func Judged(t testing.TB, d *pb.Device, why string) {
	t.Helper()
	got := strings.Join(d.GetRejectReasons(), "; ")
	if d == nil || d.GetAllocatable() != (why == "") || !strings.Contains(got, why) {
		t.Errorf("device %s is rejected for %q, want %q", d.GetId(), got, why)
	}
}

// Tree is a simulated machine whose files can be changed.
type Tree interface {
	Write(file, text string) error
	Remove(file string) error
}

// Spoil replaces the contents of a file, or removes the file if text is empty.
func Spoil(t testing.TB, tree Tree, file, text string) {
	t.Helper()
	var err error
	if text == "" {
		err = tree.Remove(file)
	} else {
		err = tree.Write(file, text)
	}
	if err != nil {
		t.Fatal(err)
	}
}
