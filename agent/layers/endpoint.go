package layers

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
)

// DefaultPort is the TCP port at which an agent serves other agents.
const DefaultPort = 8426

// ParseEndpoint reads a setting: an IP address, :port or both. known is the default address.
func ParseEndpoint(setting string, known netip.Addr) (netip.AddrPort, error) {
	if a, err := netip.ParseAddr(setting); err == nil && !a.IsUnspecified() {
		return netip.AddrPortFrom(a, DefaultPort), nil
	}
	if a, err := netip.ParseAddrPort(setting); err == nil && !a.Addr().IsUnspecified() {
		return a, nil
	}
	if setting == "" {
		return netip.AddrPortFrom(known, DefaultPort), nil
	}
	if text, ok := strings.CutPrefix(setting, ":"); ok {
		if port, err := strconv.ParseUint(text, 10, 16); err == nil {
			return netip.AddrPortFrom(known, uint16(port)), nil
		}
	}
	return netip.AddrPort{}, fmt.Errorf("address for other agents %.80q is not off, an IP address, :port or address:port: %w", setting, errdefs.ErrInvalidArgument)
}
