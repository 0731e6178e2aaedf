// Package resource is exact arithmetic on resource slots. An amount is an
// int64 in the slot's smallest step: whole units for counts, bytes for memory,
// thousandths for shares and cpu. The scale follows from the slot's name, so
// the same number means the same in a row, a message and a plan.
package resource

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
)

// Intrinsic slots that every agent has.
const (
	CPU = "cpu" // cores, in thousandths
	Mem = "mem" // bytes
)

// MaxAmount limits every amount, so that sums over a million rows stay exact.
const MaxAmount = math.MaxInt64 / 1_000_000

// ErrSyntax is returned for text that is not an amount.
var ErrSyntax = errors.New("not a number")

// Kind is the unit of a slot.
type Kind int

// The kinds of slots.
const (
	Count  Kind = iota // whole units
	Bytes              // bytes, accepts 4g
	Shares             // thousandths
)

// KindOf returns the kind from the slot's name: cpu and *.shares are shares, mem and *.mem are
// bytes, everything else is counted.
func KindOf(slot string) Kind {
	switch {
	case slot == CPU || strings.HasSuffix(slot, ".shares"):
		return Shares
	case slot == Mem || strings.HasSuffix(slot, ".mem"):
		return Bytes
	}
	return Count
}

// Scale returns the power of ten between a unit and the stored amount: 3 for
// shares, else 0.
func Scale(slot string) int {
	if KindOf(slot) == Shares {
		return 3
	}
	return 0
}

// ValidName reports whether s can be the name of a slot: a DNS-label key, optionally a dot and a
// unit, optionally a colon and a partition profile (cpu, cuda.device, cuda.device:1g.10gb-mig).
func ValidName(s string) bool {
	if s == "" || len(s) > 64 || !isLower(s[0]) {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !isLower(c) && (c < '0' || c > '9') && c != '-' && c != '.' && c != ':' && c != '+' {
			return false
		}
	}
	return true
}

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }

var suffixes = []struct {
	text string
	mul  int64
}{
	{"ki", 1 << 10}, {"mi", 1 << 20}, {"gi", 1 << 30}, {"ti", 1 << 40}, {"pi", 1 << 50},
	{"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {"t", 1 << 40}, {"p", 1 << 50},
}

// Parse reads a decimal amount of the slot. Bytes accept binary suffixes (512m, 4g, 1.5Gi; k =
// 1024, with an optional trailing b). Parse returns an error for more digits than the slot's scale
// has, and for amounts above MaxAmount. It accepts negative numbers; callers check them.
func Parse(slot, text string) (int64, error) {
	s := strings.ToLower(strings.TrimSpace(text))
	mul := int64(1)
	if KindOf(slot) == Bytes {
		s = strings.TrimSuffix(s, "b")
		for _, x := range suffixes {
			if rest, ok := strings.CutSuffix(s, x.text); ok {
				s, mul = strings.TrimSpace(rest), x.mul
				break
			}
		}
	}
	if !plainDecimal(s) {
		return 0, fmt.Errorf("slot %s: %.40q: %w", slot, text, ErrSyntax)
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return 0, fmt.Errorf("slot %s: %.40q: %w", slot, text, ErrSyntax)
	}
	r.Mul(r, new(big.Rat).SetInt64(mul))
	r.Mul(r, new(big.Rat).SetInt64(pow10(Scale(slot))))
	if !r.IsInt() {
		if KindOf(slot) == Shares {
			return 0, fmt.Errorf("slot %s: %.40s is finer than the smallest step 0.001", slot, text)
		}
		return 0, fmt.Errorf("slot %s: %.40s is a fraction, but the slot counts whole units", slot, text)
	}
	n := r.Num()
	if !n.IsInt64() || n.Int64() > MaxAmount || n.Int64() < -MaxAmount {
		return 0, fmt.Errorf("slot %s: %.40s is above the largest amount %s", slot, text, Format(slot, MaxAmount))
	}
	return n.Int64(), nil
}

// plainDecimal reports false for exponents, hexadecimal numbers and fractions (1e9, 0x1, 1/3).
func plainDecimal(s string) bool {
	if len(s) == 0 || len(s) > 40 {
		return false
	}
	digits, dots := 0, 0
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c == '.':
			dots++
		case (c == '-' || c == '+') && i == 0:
		default:
			return false
		}
	}
	return digits > 0 && dots <= 1
}

// Format formats an amount as a plain decimal without trailing zeros.
func Format(slot string, amount int64) string {
	scale := Scale(slot)
	if scale == 0 {
		return fmt.Sprint(amount)
	}
	sign := ""
	u := uint64(amount)
	if amount < 0 {
		sign, u = "-", uint64(-amount)
	}
	p := uint64(pow10(scale))
	whole, frac := u/p, u%p
	if frac == 0 {
		return fmt.Sprintf("%s%d", sign, whole)
	}
	return strings.TrimRight(fmt.Sprintf("%s%d.%0*d", sign, whole, scale, frac), "0")
}

func pow10(n int) int64 {
	p := int64(1)
	for range n {
		p *= 10
	}
	return p
}
