package device

import (
	"math"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

func TestLimitsNobodyMayRaise(t *testing.T) {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &own); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		ask        uint64
		mayRaise   bool
		soft, hard uint64
	}{
		"may raise":        {math.MaxUint64, true, math.MaxUint64, math.MaxUint64},
		"may not":          {math.MaxUint64, false, own.Max, own.Max},
		"less than it has": {min(4096, own.Max), false, min(4096, own.Max), min(4096, own.Max)},
	} {
		got := limit(&acceleratorpb.Rlimit{Name: "memlock", Soft: tt.ask, Hard: tt.ask}, tt.mayRaise)
		if got.Type != "RLIMIT_MEMLOCK" || got.Soft != tt.soft || got.Hard != tt.hard {
			t.Errorf("%s: %+v, want %d and %d", name, got, tt.soft, tt.hard)
		}
	}
}
