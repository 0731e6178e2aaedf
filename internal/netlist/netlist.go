// Package netlist parses lists of networks that containers can or cannot reach. The manager checks
// the lists that people enter, and the agent converts them to firewall rules.
package netlist

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
)

// MaxEntries is the largest number of networks in a list.
const MaxEntries = 64

// Entry is an IPv4 network, and a port of TCP and UDP; port 0 is all of IP.
type Entry struct {
	Network netip.Prefix
	Port    uint16
}

// Private are the networks that are not part of the Internet: RFC 1918, and the shared addresses of
// carriers and clouds (RFC 6598).
var Private = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"),
	netip.MustParsePrefix("172.16.0.0/12"),
	netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("100.64.0.0/10"),
}

// LinkLocal contains, among others, the address at which clouds serve a machine's credentials. No
// list can open it.
var LinkLocal = netip.MustParsePrefix("169.254.0.0/16")

// Parse reads entries: 10.1.0.0/16, 10.1.2.3, 10.1.0.0/16:443 or 10.1.2.3:443.
// It returns ErrInvalidArgument for anything else, IPv6 and link-local included.
func Parse(list []string) ([]Entry, error) {
	if len(list) > MaxEntries {
		return nil, fmt.Errorf("%d networks are more than %d: %w", len(list), MaxEntries, errdefs.ErrInvalidArgument)
	}
	entries := make([]Entry, 0, len(list))
	for _, text := range list {
		e, err := parse(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", err, errdefs.ErrInvalidArgument)
		}
		if !slices.Contains(entries, e) {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// Check returns what is wrong with the text of an entry, for the person who wrote it.
func Check(text string) error {
	_, err := parse(strings.TrimSpace(text))
	return err
}

// ParseNetworks reads entries without a port.
func ParseNetworks(list []string) (networks []netip.Prefix, err error) {
	entries, err := Parse(list)
	for _, e := range entries {
		if e.Port != 0 {
			return nil, fmt.Errorf("%q has a port, which is not possible here: %w", e, errdefs.ErrInvalidArgument)
		}
		networks = append(networks, e.Network)
	}
	return networks, err
}

func parse(text string) (e Entry, err error) {
	where, port, hasPort := strings.Cut(text, ":")
	if e.Network, err = netip.ParsePrefix(where); err != nil {
		var a netip.Addr
		if a, err = netip.ParseAddr(where); err == nil {
			e.Network = netip.PrefixFrom(a, a.BitLen())
		}
	}
	number := uint64(0)
	if err == nil && hasPort {
		number, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil || !e.Network.Addr().Is4() || hasPort && number == 0 {
		return e, fmt.Errorf("%.80q is not an IPv4 address or network with an optional port, such as 10.1.0.0/16 or 10.1.2.3:443", text)
	}
	e.Network, e.Port = e.Network.Masked(), uint16(number)
	if e.Network.Bits() > 0 && e.Network.Overlaps(LinkLocal) {
		return e, fmt.Errorf("%.80q is a link-local network, which containers cannot reach", text)
	}
	return e, nil
}

// String returns the form that Parse reads.
func (e Entry) String() string {
	text := e.Network.String()
	if e.Network.IsSingleIP() {
		text = e.Network.Addr().String()
	}
	if e.Port != 0 {
		text += ":" + strconv.Itoa(int(e.Port))
	}
	return text
}

// Strings returns the entries in the form that Parse reads.
func Strings(list []Entry) []string {
	texts := make([]string, 0, len(list))
	for _, e := range list {
		texts = append(texts, e.String())
	}
	return texts
}

// Ports returns the ports of the entries, each once; 0 for an entry without a port.
func Ports(list []Entry) (ports []uint16) {
	for _, e := range list {
		if !slices.Contains(ports, e.Port) {
			ports = append(ports, e.Port)
		}
	}
	return ports
}

// Range is the addresses from First to Last, both included.
type Range struct{ First, Last netip.Addr }

// Open returns the addresses that the entries with a port open. Of the entries and denied networks
// that contain an address, the narrowest one decides; of two equal ones, the entry.
func Open(list []Entry, port uint16, denied []netip.Prefix) []Range {
	var allowed []netip.Prefix
	for _, e := range list {
		if e.Port == port {
			allowed = append(allowed, e.Network)
		}
	}
	return ranges(append(slices.Clone(allowed), denied...), func(a netip.Addr) bool {
		in := narrowest(allowed, a)
		return in >= 0 && in >= narrowest(denied, a)
	})
}

// Union returns the addresses of all of the networks.
func Union(networks []netip.Prefix) []Range {
	return ranges(networks, func(a netip.Addr) bool { return narrowest(networks, a) >= 0 })
}

// narrowest returns the length of the longest prefix that contains an address, or -1.
func narrowest(list []netip.Prefix, a netip.Addr) int {
	bits := -1
	for _, p := range list {
		if p.Contains(a) {
			bits = max(bits, p.Bits())
		}
	}
	return bits
}

// ranges returns the addresses with a property that changes only where a network begins or ends.
func ranges(networks []netip.Prefix, has func(netip.Addr) bool) (list []Range) {
	starts := []netip.Addr{netip.IPv4Unspecified()}
	for _, p := range networks {
		starts = append(starts, p.Addr())
		if next := last(p).Next(); next.Is4() {
			starts = append(starts, next)
		}
	}
	slices.SortFunc(starts, netip.Addr.Compare)
	starts = slices.Compact(starts)
	for i, first := range starts {
		if !has(first) {
			continue
		}
		end := netip.AddrFrom4([4]byte{255, 255, 255, 255})
		if i+1 < len(starts) {
			end = starts[i+1].Prev()
		}
		if n := len(list); n > 0 && list[n-1].Last.Next() == first {
			list[n-1].Last = end
		} else {
			list = append(list, Range{first, end})
		}
	}
	return list
}

func last(p netip.Prefix) netip.Addr {
	b := p.Addr().As4()
	for i := range b {
		if free := p.Bits() - 8*i; free <= 0 {
			b[i] = 255
		} else if free < 8 {
			b[i] |= 255 >> free
		}
	}
	return netip.AddrFrom4(b)
}
