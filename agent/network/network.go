// Package network creates a network namespace for every kernel and a bridge for every session,
// using netlink and nftables directly, without CNI programs or iptables.
//
// The bridges are in one network namespace of the agent (own.go), which a single veth pair connects
// to the host's. Starting and ending sessions therefore does not change the host's links: browsers
// on the same machine abort requests at every such change.
//
// Kernels of one session share a bridge and can reach each other. No connection can be opened to
// them from other sessions, the host or its network. They reach the outside with the host's
// address, but no service on the host, no link-local address (at which clouds serve a machine's
// credentials), and private networks only if the operator allows them. Each session has a bridge,
// instead of isolated ports on a common one, because the same rules must apply where a VXLAN device
// extends a session's bridge to other hosts (overlay.go).
//
// All names begin with a tag derived from the agent's id, so that several agents can share one
// host.
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

// DefaultSubnet is divided among the sessions of one agent and its uplink.
var DefaultSubnet = netip.MustParsePrefix("10.213.0.0/16")

// sessionBits is the prefix length of one session's subnet: 29 kernels and the gateway.
const sessionBits = 27

// Config configures a Manager.
type Config struct {
	Agent  string       // id of the agent, from which all names are derived
	Dir    string       // where network namespaces are mounted
	Subnet netip.Prefix // zero = DefaultSubnet
	// Claims is the directory in which the agents of one host record the subnets they use. It must
	// not survive a reboot. "" = /run/berth/subnets.
	Claims string
	// Endpoint is the address to which agents of other hosts send packets for kernels here. If it
	// is invalid, sessions with kernels on other hosts cannot have kernels here; Off is the reason.
	Endpoint netip.AddrPort
	Off      string
	// Kernels cannot reach private networks and Deny, except Allow. Of several networks that
	// contain an address, the narrowest decides.
	Allow []netlist.Entry
	Deny  []netip.Prefix
	// Resolvers returns the servers in the resolv.conf of new kernels. Kernels can send DNS
	// requests to them even if other rules deny their addresses.
	Resolvers func() []netip.Addr
	Logger    *slog.Logger
}

// Attachment is the network configuration of one kernel. It is stored in the kernel's record.
type Attachment struct {
	Key     string       `json:"key"` // name of the namespace
	Session string       `json:"session"`
	Subnet  netip.Prefix `json:"subnet"` // of the session
	Address netip.Addr   `json:"address"`
	Overlay *Overlay     `json:"overlay,omitempty"` // of a session that spans several agents
	// Allow are networks that the session can reach in addition to Config.Allow.
	Allow []netlist.Entry `json:"allow,omitempty"`
}

// Gateway returns the agent's address on the session's bridge.
func (a Attachment) Gateway() netip.Addr { return a.Subnet.Addr().Next() }

// Manager reserves and creates attachments.
type Manager struct {
	cfg  Config
	tag  string
	off  string // why there is no overlay
	host *space // the namespace in which New was called
	own  *space

	mu        sync.Mutex
	resolvers map[netip.Addr]bool
	sessions  map[string]*segment
	cable     netip.Prefix // of the uplink, once ready
	ready     bool         // the uplink and both firewalls exist
}

// segment is the network of one session.
type segment struct {
	subnet  netip.Prefix
	overlay *Overlay
	used    map[netip.Addr]string // address to key
	allow   []netlist.Entry
	card    net.HardwareAddr // MAC address of its bridge; nil = any

	mu sync.Mutex // serializes creation and removal of the bridge
}

// New prepares a manager and its namespace. It does not change the host's namespace yet.
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

// tag shortens the agent's id so that it fits into an interface name.
func tag(agent string) string {
	sum := sha256.Sum256([]byte(agent))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:5])
}

// Prefixes of link names. Interface names have at most 15 bytes.
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
	if a.Overlay != nil { // all sessions of a cluster are within one network of 2^24 addresses
		return fmt.Sprintf("%s%x", m.wires(), number(a.Address)&0xffffff)
	}
	return fmt.Sprintf("%s%x", m.veths(), m.offset(a.Address))
}

// offset returns the position of an address in the agent's subnet.
func (m *Manager) offset(a netip.Addr) uint32 { return number(a) - number(m.cfg.Subnet.Addr()) }

func number(a netip.Addr) uint32 {
	b := a.As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

func address(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

// Path returns the mount point of the kernel's network namespace.
func (m *Manager) Path(a Attachment) string { return filepath.Join(m.cfg.Dir, a.Key) }
