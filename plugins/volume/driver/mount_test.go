package driver

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

func TestExported(t *testing.T) {
	for name, c := range map[string]struct {
		seen identity
		path string
		want codes.Code
	}{
		"it":            {identity{fsType: "nfs4", source: "filer:/vol/berth"}, "/vol/berth", codes.OK},
		"another":       {identity{fsType: "nfs", source: "filer:/vol/other"}, "/vol/berth", codes.FailedPrecondition},
		"a longer name": {identity{fsType: "nfs4", source: "filer:/a/vol/berth"}, "/vol/berth", codes.FailedPrecondition},
		"below":         {identity{fsType: "nfs4", source: "[fd00::1]:/vol/berth/x"}, "/vol/berth", codes.FailedPrecondition},
		"no NFS":        {identity{fsType: "btrfs", source: "/dev/sda1"}, "/vol/berth", codes.OK},
	} {
		if err := (&Mount{seen: c.seen}).Exported(c.path); status.Code(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOldFigureIsNotExact checks that the previous usage is marked as not exact while a scope is
// measured again.
func TestOldFigureIsNotExact(t *testing.T) {
	m, err := OpenMount(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := NewWalker(m, time.Hour)
	walking := make(chan struct{})
	w.usage["x"] = &usage{last: &pb.TreeUsageReport{Bytes: 7, Exact: true}, walking: walking}
	if got := w.Measure(t.Context(), "x"); got.GetBytes() != 7 || got.Exact {
		t.Errorf("while it is measured: %v", got)
	}
	w.usage["x"].walking, w.usage["x"].at = nil, time.Now()
	if got := w.Measure(t.Context(), "x"); got.GetBytes() != 7 || !got.Exact {
		t.Errorf("of now: %v", got)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
