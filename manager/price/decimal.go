package price

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/berthhq/berth/internal/problem"
)

const (
	decimals = 6             // of amounts
	million  = 1_000_000     // micros of one unit of the currency
	most     = 1_000_000_000 // of an amount
)

// Parse reads a decimal amount of a field, in millionths.
func Parse(field, text string) (int64, error) {
	wrong := problem.Invalid(field, "%q is not a decimal from 0 to %d with at most %d decimals, such as 0.25", short(text), most, decimals).WithLimit(fmt.Sprint(most))
	whole, part, point := strings.Cut(text, ".")
	if whole == "" || len(whole) > 10 || len(part) > decimals || point && part == "" || strings.Trim(whole+part, "0123456789") != "" {
		return 0, wrong
	}
	var n int64
	for _, c := range whole + part + strings.Repeat("0", decimals-len(part)) {
		n = n*10 + int64(c-'0')
	}
	if n > most*million {
		return 0, wrong
	}
	return n, nil
}

func short(text string) string {
	if len(text) > 40 {
		return text[:40] + "…"
	}
	return text
}

// Format writes millionths as a decimal.
func Format(micros int64) string { return Decimal(big.NewInt(micros)) }

// Decimal writes millionths as a decimal.
func Decimal(micros *big.Int) string {
	text := new(big.Rat).SetFrac(micros, big.NewInt(million)).FloatString(decimals)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// Rounded rounds an exact number of millionths half up and writes it as a decimal.
func Rounded(micros *big.Rat) string { return Decimal(round(micros)) }

// round rounds half up.
func round(r *big.Rat) *big.Int {
	half := new(big.Rat).Add(r, big.NewRat(1, 2))
	return floor(half)
}

func floor(r *big.Rat) *big.Int {
	return new(big.Int).Div(r.Num(), r.Denom()) // Euclidean, and the denominator is positive
}

// Apportion rounds parts so that they add up to their rounded sum: each is rounded down, and the
// missing millionths go to the parts with the largest remainders, of equal ones to the first. So
// the rows of a report add up to the same total however they are grouped.
func Apportion(parts []*big.Rat) []*big.Int {
	sum, rest := new(big.Rat), new(big.Int)
	out, order, left := make([]*big.Int, len(parts)), make([]int, len(parts)), make([]*big.Rat, len(parts))
	for i, p := range parts {
		sum.Add(sum, p)
		out[i], order[i] = floor(p), i
		left[i] = new(big.Rat).Sub(p, new(big.Rat).SetInt(out[i]))
		rest.Add(rest, out[i])
	}
	missing := new(big.Int).Sub(round(sum), rest).Int64() // at most len(parts)
	slices.SortStableFunc(order, func(a, b int) int { return left[b].Cmp(left[a]) })
	for _, i := range order[:missing] {
		out[i].Add(out[i], big.NewInt(1))
	}
	return out
}
