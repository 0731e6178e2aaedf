// Package egress dials servers that people name, and refuses addresses of the platform's own
// network. It checks the address after the name was resolved, when it dials, so a name cannot
// resolve to another address between the check and the connection.
package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
)

// Reach is the set of addresses that connections can use.
type Reach int

// The reaches.
const (
	Public  Reach = iota // addresses of the Internet: for servers that users and domains name
	Private              // all except the metadata of machines: for servers that operators name
)

// Policy is the list of hosts, by name, and networks that the operator allows in addition.
type Policy struct {
	hosts    map[string]bool
	networks []netip.Prefix
}

// Parse reads hosts (minio.local), addresses and networks (10.1.0.0/16).
func Parse(list []string) (*Policy, error) {
	p := &Policy{hosts: map[string]bool{}}
	for _, one := range list {
		one = strings.ToLower(strings.TrimSpace(one))
		if n, err := netip.ParsePrefix(one); err == nil {
			p.networks = append(p.networks, n.Masked())
		} else if a, err := netip.ParseAddr(one); err == nil {
			p.networks = append(p.networks, netip.PrefixFrom(a, a.BitLen()))
		} else if one == "" || strings.ContainsAny(one, "/: ") {
			return nil, fmt.Errorf("%q is neither a host, an address nor a network: %w", one, errdefs.ErrInvalidArgument)
		} else {
			p.hosts[one] = true
		}
	}
	return p, nil
}

// Allows reports whether the operator allows the host by its name, or by its address if the host is one.
func (p *Policy) Allows(host string) bool {
	if p.hosts[strings.ToLower(strings.TrimSuffix(host, "."))] {
		return true
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	a = a.WithZone("").Unmap()
	for _, n := range p.networks {
		if n.Contains(a) {
			return true
		}
	}
	return false
}

// Refused is the error of an address that must not be used.
type Refused struct {
	Address netip.Addr
	Why     string
	Reach   Reach
}

// Error does not contain the address of a name that a user chose: otherwise users could look up
// names of the internal network.
func (r *Refused) Error() string {
	if r.Reach == Public {
		return "the host is not on the Internet, and not one that the operator allows with --object-storage-network"
	}
	return fmt.Sprintf("address %s is %s", r.Address, r.Why)
}

func (r *Refused) Unwrap() error { return errdefs.ErrInvalidArgument }

// Transport returns an HTTP transport for the addresses of the reach. It uses no proxy of the
// environment, because a proxy would resolve names itself.
func (p *Policy) Transport(reach Reach) *http.Transport {
	return &http.Transport{
		DialContext:           p.Dialer(reach),
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: time.Minute,
		IdleConnTimeout:       time.Minute,
		MaxIdleConnsPerHost:   16,
		DisableCompression:    true, // bytes are counted and summed as they are stored
	}
}

// Named returns the transport for servers that operators name, such as registries and identity
// providers: it reaches all addresses except those where no such server can be. Unlike Transport,
// it uses the proxy of the environment.
func Named() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&Policy{}).Dialer(Private)
	return t
}

// Dialer returns a function that dials the addresses of the reach.
func (p *Policy) Dialer(reach Reach) func(ctx context.Context, network, address string) (net.Conn, error) {
	open := &net.Dialer{Timeout: 10 * time.Second}
	checked := &net.Dialer{Timeout: open.Timeout, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("dial %s: %w", address, err)
		}
		return p.Check(reach, at.Addr())
	}}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err == nil && p.hosts[strings.ToLower(strings.TrimSuffix(host, "."))] {
			return open.DialContext(ctx, network, address)
		}
		conn, err := checked.DialContext(ctx, network, address)
		if r := (*Refused)(nil); errors.As(err, &r) {
			return nil, r // without the other addresses of the name
		}
		return conn, err
	}
}

// Beside returns a function that dials servers that another server names, for example in a
// redirect. It reaches the addresses that CheckBeside accepts.
func Beside(home netip.Addr) func(ctx context.Context, network, address string) (net.Conn, error) {
	d := &net.Dialer{Timeout: 10 * time.Second, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("dial %s: %w", address, err)
		}
		return CheckBeside(home, at.Addr())
	}}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := d.DialContext(ctx, network, address)
		if r := (*Refused)(nil); errors.As(err, &r) {
			return nil, r // without the other addresses of the name
		}
		return conn, err
	}
}

// CheckBeside returns Refused for addresses that a server at home must not send others to: those of
// the platform's own network, unless home is in that network too, and those of the machine itself,
// unless home is on it. An invalid home is a server on the Internet.
func CheckBeside(home, a netip.Addr) error {
	p := &Policy{}
	outside := p.Check(Public, a)
	if outside == nil {
		return nil
	}
	if err := p.Check(Private, a); err != nil {
		return err
	}
	refused := outside.(*Refused)
	refused.Reach = Private // operators read this error
	if !home.IsValid() || p.Check(Public, home) == nil || isLoopback(a) && !isLoopback(home) {
		return refused
	}
	return nil
}

func isLoopback(a netip.Addr) bool {
	a = a.WithZone("").Unmap()
	if v4, ok := embedded(a); ok {
		a = v4
	}
	return a.IsLoopback()
}

// Check returns Refused for an address outside of the reach.
func (p *Policy) Check(reach Reach, a netip.Addr) error {
	a = a.WithZone("").Unmap()
	for _, n := range p.networks {
		if n.Contains(a) {
			return nil
		}
	}
	inner := a
	if v4, ok := embedded(a); ok {
		inner = v4
	}
	why, is := within(never, inner)
	if !is {
		why, is = within(never, a)
	}
	if is {
		return &Refused{a, why, reach}
	}
	if reach == Private {
		return nil
	}
	if why, is := within(inside, inner); is {
		return &Refused{a, why, reach}
	}
	return nil
}

// Plain describes an error of a connection without the addresses, names and servers of the internal
// network, which the errors of the standard library contain.
func Plain(err error) string {
	var out *Refused
	var lookup *net.DNSError
	var number syscall.Errno
	var timeout net.Error
	switch {
	case errors.As(err, &out):
		return out.Error()
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return "the host does not exist"
	case errors.As(err, &lookup):
		return "the host cannot be looked up"
	case errors.As(err, &number):
		return number.Error()
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	case errors.As(err, new(*net.OpError)), errors.As(err, new(*net.AddrError)):
		return "the connection broke"
	}
	return err.Error()
}

type block struct {
	network netip.Prefix
	what    string
}

func within(list []block, a netip.Addr) (what string, is bool) {
	for _, b := range list {
		if b.network.Contains(a) {
			return b.what, true
		}
	}
	return "", false
}

// never are addresses that no storage has: link-local ones, where clouds serve the credentials of
// machines, and multicast, reserved and unspecified ones.
var never = []block{
	{netip.MustParsePrefix("169.254.0.0/16"), "of a link"},
	{netip.MustParsePrefix("fe80::/10"), "of a link"},
	{netip.MustParsePrefix("fd00:ec2::254/128"), "for a machine's metadata"},
	{netip.MustParsePrefix("100.100.100.200/32"), "for a machine's metadata"},
	{netip.MustParsePrefix("168.63.129.16/32"), "for a machine's metadata"},
	{netip.MustParsePrefix("192.0.0.192/32"), "for a machine's metadata"},
	{netip.MustParsePrefix("0.0.0.0/8"), "no host's"},
	{netip.MustParsePrefix("::/128"), "no host's"},
	{netip.MustParsePrefix("224.0.0.0/3"), "no host's"}, // multicast, reserved and broadcast
	{netip.MustParsePrefix("ff00::/8"), "no host's"},
	// The IPv4 address behind an address of these translators cannot be determined. An operator who
	// reaches the Internet through one allows its prefix.
	{netip.MustParsePrefix("64:ff9b:1::/48"), "a translator's"},
	{netip.MustParsePrefix("2001::/32"), "a tunnel's"}, // Teredo
}

// inside are addresses that lead to this machine or its own network.
var inside = []block{
	{netip.MustParsePrefix("127.0.0.0/8"), "of the machine itself"},
	{netip.MustParsePrefix("::1/128"), "of the machine itself"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "private"},
	{netip.MustParsePrefix("192.0.0.0/24"), "private"},
	{netip.MustParsePrefix("198.18.0.0/15"), "private"},
	{netip.MustParsePrefix("fc00::/7"), "private"},
	{netip.MustParsePrefix("fec0::/10"), "private"},
}

// embedded returns the IPv4 address to which a translator forwards an IPv6 address.
func embedded(a netip.Addr) (netip.Addr, bool) {
	if a.Is4() {
		return a, false
	}
	b := a.As16()
	switch {
	case nat64.Contains(a), compatible.Contains(a) && a != netip.IPv6Loopback() && !a.IsUnspecified():
		return netip.AddrFrom4([4]byte(b[12:16])), true
	case sixToFour.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return a, false
}

var (
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	compatible = netip.MustParsePrefix("::/96")
	sixToFour  = netip.MustParsePrefix("2002::/16")
)
