package accelerator_test

import (
	"strings"
	"testing"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// unify turns shares and bytes into aliases of one amount.
func unify(list []*pb.SlotType) { list[1].Unified, list[2].Unified = true, true }

func TestValidateUnified(t *testing.T) {
	for name, c := range map[string]struct {
		spoil    func(d *pb.DescribeResponse)
		wantText string // the error must contain this; empty: no error
	}{
		"shares and bytes":       {func(*pb.DescribeResponse) {}, ""},
		"wholes excluded":        {func(d *pb.DescribeResponse) { d.Slots[1].ExclusiveWith = []string{"x.device", "x.device:*"} }, ""},
		"by kind":                {func(d *pb.DescribeResponse) { d.Slots[0].Kind = 5 }, "kind"},
		"unique":                 {func(d *pb.DescribeResponse) { d.Slots[3].Unified = true }, "unified is not allowed for kind UNIQUE"},
		"that exclude":           {func(d *pb.DescribeResponse) { d.Slots[2].ExclusiveWith = []string{"x.shares"} }, `excludes "x.shares", and both are unified`},
		"excluded by a wildcard": {func(d *pb.DescribeResponse) { d.Slots[2].ExclusiveWith = []string{"x.sh*"} }, "both are unified"},
		"excludes a part": {func(d *pb.DescribeResponse) {
			d.Slots[0].Unified, d.Slots[0].ExclusiveWith = true, []string{"x.mem"}
		}, "both are unified"},
	} {
		d := description()
		unify(d.Slots)
		c.spoil(d)
		err := accelerator.ValidateDescription(d)
		if (err == nil) != (c.wantText == "") || err != nil && !strings.Contains(err.Error(), c.wantText) {
			t.Errorf("%s: %v, want %q", name, err, c.wantText)
		}
	}

	d, s := description(), good()
	unify(s.Slots)
	if err := accelerator.Validate(d, s); err == nil || !strings.Contains(err.Error(), "was not described") {
		t.Errorf("unified in the snapshot alone: %v", err)
	}
	unify(d.Slots)
	if err := accelerator.Validate(d, s); err != nil {
		t.Errorf("unified in both: %v", err)
	}
}
