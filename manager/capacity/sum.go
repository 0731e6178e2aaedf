package capacity

import (
	"math/big"
	"math/bits"
)

// Sum is a number of 128 bits, because a month of a terabyte in bytes times microseconds does not fit into 64.
type Sum struct{ hi, lo uint64 }

func times(amount int64, time uint64) (s Sum) {
	s.hi, s.lo = bits.Mul64(uint64(max(0, amount)), time)
	return s
}

func (s *Sum) add(o Sum) {
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, o.lo, 0)
	s.hi, _ = bits.Add64(s.hi, o.hi, carry)
}

// minus returns s - o, for an o that is not larger.
func (s Sum) minus(o Sum) (d Sum) {
	var borrow uint64
	d.lo, borrow = bits.Sub64(s.lo, o.lo, 0)
	d.hi, _ = bits.Sub64(s.hi, o.hi, borrow)
	return d
}

// per returns s divided by n, without the remainder.
func (s Sum) per(n uint64) (q Sum) {
	q.hi = s.hi / n
	q.lo, _ = bits.Div64(s.hi%n, s.lo, n)
	return q
}

func least(a, b Sum) Sum {
	if a.hi < b.hi || a.hi == b.hi && a.lo < b.lo {
		return a
	}
	return b
}

// Int returns s as a number of any size.
func (s Sum) Int() *big.Int {
	n := new(big.Int).SetUint64(s.hi)
	return n.Lsh(n, 64).Add(n, new(big.Int).SetUint64(s.lo))
}
