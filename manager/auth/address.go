package auth

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ClientAddress returns the client's address: that of the peer, or the one that a trusted
// proxy reports. It is the zero address for a peer without one, as on a unix socket.
func (s *Service) ClientAddress(r *http.Request) netip.Addr {
	peer := parseAddress(r.RemoteAddr)
	if !s.trusts(peer) {
		return peer
	}
	// The nearest proxy wrote the last entry. Entries to the left of the first untrusted one
	// can be forged.
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		a := parseAddress(strings.TrimSpace(hop))
		if !a.IsValid() {
			break
		}
		peer = a
		if !s.trusts(a) {
			break
		}
	}
	return peer
}

type addressKey struct{}

// addressed adds the client's address to the request's context, because a WebSocket sends its
// credential later, when the request is no longer available.
func (s *Service) addressed(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), addressKey{}, s.ClientAddress(r)))
}

// AddressFrom returns the client's address from a context. If unknown, it is the zero address,
// which is in no network.
func AddressFrom(ctx context.Context) netip.Addr {
	a, _ := ctx.Value(addressKey{}).(netip.Addr)
	return a
}

// overTLS reports whether the browser uses TLS, to the manager or to a trusted proxy.
func (s *Service) overTLS(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	return s.trusts(parseAddress(r.RemoteAddr)) && strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

func (s *Service) trusts(a netip.Addr) bool {
	return a.IsValid() && slices.ContainsFunc(s.trusted, func(p netip.Prefix) bool { return p.Contains(a) })
}

// parseAddress reads an address with or without a port.
func parseAddress(s string) netip.Addr {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap().WithZone("")
	}
	a, err := netip.ParseAddr(strings.Trim(s, "[]"))
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap().WithZone("")
}

// NetworkFrom returns the network of the client of a request: its address, or its /64 for IPv6.
func NetworkFrom(ctx context.Context) string { return network(AddressFrom(ctx).Unmap().WithZone("")) }

// network returns the unit of addresses that is counted: a /64 for IPv6, because one host has
// all of it.
func network(a netip.Addr) string {
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.String()
		}
	}
	return a.String()
}
