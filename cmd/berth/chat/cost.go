package chat

import (
	"math/big"
	"strings"
)

// cost shows what an answer cost, after a comma; empty without prices. Without a price for tokens in the cache of the
// engine, that of the input applies, as in the charges of the platform.
func (t *talk) cost(n *usage) string {
	if n == nil || t.prices == nil {
		return ""
	}
	sum, priced := new(big.Rat), false
	add := func(tokens int, prices ...*string) {
		for _, text := range prices {
			if text == nil {
				continue
			}
			if price, ok := new(big.Rat).SetString(*text); ok {
				sum.Add(sum, price.Mul(price, big.NewRat(int64(tokens), 1000)))
				priced = true
			}
			return
		}
	}
	cached := min(n.Details.Cached, n.Prompt)
	add(n.Prompt-cached, t.prices.Input)
	if cached > 0 {
		add(cached, t.prices.CachedInput, t.prices.Input)
	}
	add(n.Completion, t.prices.Output)
	if !priced {
		return ""
	}
	return ", " + strings.TrimSuffix(strings.TrimRight(sum.FloatString(6), "0"), ".") + " " + t.currency
}
