package accelerator

import (
	"fmt"
	"math"
	"strings"

	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// MaxAmount is the largest amount, in the slot's smallest step. The rest of the platform has the
// same limit.
const MaxAmount = math.MaxInt64 / 1_000_000

// ParseAmount parses a decimal in the contract's format and returns it in the kind's smallest step:
// thousandths for SHARES, ones otherwise.
func ParseAmount(kind acceleratorpb.SlotType_Kind, s string) (int64, error) {
	whole, frac, dot := strings.Cut(s, ".")
	if kind == acceleratorpb.SlotType_SHARES {
		if len(frac) > 3 {
			return 0, fmt.Errorf("amount %.40q has more than three decimals", s)
		}
	} else if dot {
		return 0, fmt.Errorf("amount %.40q is not whole", s)
	}
	if whole == "" || (dot && frac == "") || len(whole) > 1 && whole[0] == '0' {
		return 0, fmt.Errorf("amount %.40q is not a decimal number", s)
	}
	if kind == acceleratorpb.SlotType_SHARES {
		frac += "000"[len(frac):]
	}
	var n int64
	for _, c := range []byte(whole + frac) {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("amount %.40q is not a decimal number", s)
		}
		if n = n*10 + int64(c-'0'); n > MaxAmount {
			return 0, fmt.Errorf("amount %.40q is too large", s)
		}
	}
	return n, nil
}

// FormatAmount is the inverse of ParseAmount. It returns the shortest form.
func FormatAmount(kind acceleratorpb.SlotType_Kind, n int64) string {
	if kind != acceleratorpb.SlotType_SHARES {
		return fmt.Sprint(n)
	}
	s := fmt.Sprintf("%d.%03d", n/1000, n%1000)
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}
