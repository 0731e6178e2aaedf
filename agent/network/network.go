// Package network gives every kernel a network namespace of its own and every
// session a bridge of its own, in process: netlink and nftables, no CNI
// programs, no iptables.
//
// The bridges are in one network namespace of the agent (own.go), which a single
// cable joins to the host's. So the host's links do not change when sessions
// start and end: browsers on the same machine drop requests at every change.
//
// Kernels of one session share a bridge and reach each other. Nothing else
// gets in: not from other sessions, not from the host or its network. They
// reach the world through the host's address, but no service of the host, no
// link-local address (where clouds serve a machine's credentials), and private
// networks only where the operator allows them. A bridge
// for each session rather than isolated ports on one: the same rules hold where
// a session's bridge is extended to other hosts, by a VXLAN device (overlay.go).
//
// All names begin with a tag made from the agent's id, so several agents may
// share one host.
package network

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/netlist"
)

// DefaultSubnet is divided among the sessions of one agent, and its uplink.
var DefaultSubnet = netip.MustParsePrefix("10.213.0.0/16")

// sessionBits is the size of one session's part: 29 kernels and the gateway.
const sessionBits = 27

// Config of a Manager.
type Config struct {
	Agent  string       // id of the agent, source of all names
	Dir    string       // where network namespaces are mounted
	Subnet netip.Prefix // zero = DefaultSubnet
	// Claims is where agents of one host note which subnets they use; it
	// must not outlive a reboot. "" = /run/berth/subnets.
	Claims string
	// Endpoint is where agents of other hosts send what is for kernels here. When
	// it is not valid, sessions of other hosts cannot have kernels here, for the
	// reason Off.
	Endpoint netip.AddrPort
	Off      string
	// Kernels reach no private network and none of Deny, but what Allow opens;
	// of the networks around an address the narrowest decides.
	Allow []netlist.Entry
	Deny  []netip.Prefix
	// Resolvers are the servers in the resolv.conf of kernels that start now, which
	// they may ask for names wherever they are.
	Resolvers func() []netip.Addr
	Logger    *slog.Logger
}

// Attachment is what one kernel holds. It is kept in the kernel's record.
type Attachment struct {
	Key     string       `json:"key"` // names the namespace
	Session string       `json:"session"`
	Subnet  netip.Prefix `json:"subnet"` // of the session
	Address netip.Addr   `json:"address"`
	Overlay *Overlay     `json:"overlay,omitempty"` // of a session over several agents
	// Allow is what the session reaches beside what Config.Allow opens.
	Allow []netlist.Entry `json:"allow,omitempty"`
}

// Gateway is the agent's address on the session's bridge.
func (a Attachment) Gateway() netip.Addr { return a.Subnet.Addr().Next() }

// Manager hands out attachments and makes them real.
type Manager struct {
	cfg  Config
	tag  string
	off  string // why there is no overlay
	host *space // where New was called
	own  *space

	mu        sync.Mutex
	resolvers map[netip.Addr]bool
	sessions  map[string]*segment
	cable     netip.Prefix // of the uplink, once ready
	ready     bool         // the uplink and both firewalls are in place
}

// segment is the part of one session.
type segment struct {
	subnet  netip.Prefix
	overlay *Overlay
	used    map[netip.Addr]string // address to key
	allow   []netlist.Entry
	card    net.HardwareAddr // of its bridge; nil = any

	mu sync.Mutex // held while the bridge is made or removed
}

// New prepares a manager and its namespace; nothing in the host's changes yet.
func New(cfg Config) (*Manager, error) {
	if !cfg.Subnet.IsValid() {
		cfg.Subnet = DefaultSubnet
	}
	cfg.Subnet = cfg.Subnet.Masked()
	if !cfg.Subnet.Addr().Is4() || cfg.Subnet.Bits() >= sessionBits || cfg.Subnet.Bits() < 8 {
		return nil, fmt.Errorf("subnet %s is not an IPv4 network between /8 and /%d: %w", cfg.Subnet, sessionBits-1, errdefs.ErrInvalidArgument)
	}
	if cfg.Claims == "" {
		cfg.Claims = "/run/berth/subnets"
	}
	for _, dir := range []string{cfg.Dir, cfg.Claims} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	host, err := hostSpace()
	if err != nil {
		return nil, err
	}
	m := &Manager{cfg: cfg, tag: tag(cfg.Agent), host: host, sessions: map[string]*segment{}, resolvers: map[netip.Addr]bool{}}
	if err := m.openOwn(); err != nil {
		return nil, errors.Join(err, host.Close())
	}
	if !cfg.Endpoint.IsValid() {
		m.off = cmp.Or(cfg.Off, "it is not configured")
	} else if err := m.tryOverlay(); err != nil {
		m.off = err.Error()
	}
	return m, nil
}

// tag shortens the agent's id to what fits an interface name.
func tag(agent string) string {
	sum := sha256.Sum256([]byte(agent))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:5])
}

// Names of links. Interface names hold at most 15 bytes.
const (
	bridgePrefix = "bth" // of every agent
	vethPrefix   = "bve"
	wirePrefix   = "bvo" // veths of sessions with an overlay
	tunnelPrefix = "bvx"
)

func (m *Manager) bridges() string { return bridgePrefix + m.tag + "-" }
func (m *Manager) veths() string   { return vethPrefix + m.tag + "-" }
func (m *Manager) wires() string   { return wirePrefix + m.tag + "-" }
func (m *Manager) tunnels() string { return tunnelPrefix + m.tag + "-" }

func (m *Manager) bridge(subnet netip.Prefix, o *Overlay) string {
	if o != nil {
		return fmt.Sprintf("%s%x", m.bridges(), o.VNI)
	}
	return fmt.Sprintf("%s%x", m.bridges(), m.offset(subnet.Addr())>>(32-sessionBits))
}

func (s *segment) bridge(m *Manager) string { return m.bridge(s.subnet, s.overlay) }

func (m *Manager) veth(a Attachment) string {
	if a.Overlay != nil { // all of one platform are within one network of 2^24
		return fmt.Sprintf("%s%x", m.wires(), number(a.Address)&0xffffff)
	}
	return fmt.Sprintf("%s%x", m.veths(), m.offset(a.Address))
}

// offset counts addresses from the start of the agent's subnet.
func (m *Manager) offset(a netip.Addr) uint32 { return number(a) - number(m.cfg.Subnet.Addr()) }

func number(a netip.Addr) uint32 {
	b := a.As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

func address(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

// Path of the kernel's network namespace.
func (m *Manager) Path(a Attachment) string { return filepath.Join(m.cfg.Dir, a.Key) }
