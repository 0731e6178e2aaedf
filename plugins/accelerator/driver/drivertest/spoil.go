package drivertest

import (
	"strings"
	"testing"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// Judged compares a device with why it must be rejected; without a reason it must
// be given away.
func Judged(t testing.TB, d *pb.Device, why string) {
	t.Helper()
	got := strings.Join(d.GetRejectReasons(), "; ")
	if d == nil || d.GetAllocatable() != (why == "") || !strings.Contains(got, why) {
		t.Errorf("device %s is rejected for %q, want %q", d.GetId(), got, why)
	}
}

// Tree is a machine that is made up: its files can be changed.
type Tree interface {
	Write(file, text string) error
	Remove(file string) error
}

// Spoil puts text in a file's place; without text the file goes.
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
