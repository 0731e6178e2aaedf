package identity

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/berthhq/berth/internal/problem"
)

const (
	addressField = "allowedAddresses"
	maxAddresses = 64
)

// canonical returns networks and addresses in the stored form: without host bits, IPv4
// unmapped, without duplicates.
func canonical(list []string) ([]string, error) {
	if len(list) > maxAddresses {
		return nil, problem.Invalid(addressField, "has too many entries").WithLimit(fmt.Sprint(maxAddresses))
	}
	out := make([]string, 0, len(list))
	for _, text := range list {
		p, err := network(strings.TrimSpace(text))
		if err != nil {
			return nil, problem.Invalid(addressField, "%.60q is not a network such as 10.0.0.0/8", text)
		}
		if s := p.String(); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out, nil
}

func network(text string) (netip.Prefix, error) {
	if !strings.Contains(text, "/") {
		a, err := netip.ParseAddr(text)
		if err != nil || a.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%q is not an address", text)
		}
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, err
	}
	if p.Addr().Is4In6() {
		if p.Bits() < 96 {
			return p, fmt.Errorf("%q mixes IPv4 and IPv6", text)
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked(), nil
}

// reaches reports whether an address is in a canonical list. It returns true for an unknown address
// and an empty list.
func reaches(list []string, from netip.Addr) bool {
	return len(list) == 0 || !from.IsValid() || slices.ContainsFunc(list, func(text string) bool {
		p, err := netip.ParsePrefix(text)
		return err == nil && p.Contains(from.Unmap())
	})
}
