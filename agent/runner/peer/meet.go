package peer

import (
	"bufio"
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Meeting waits for the other kernels of a session. A kernel has met another one when it has
// connected to it or received a connection from it. A received connection counts, because the other
// kernel may have ended soon after its own meeting.
type Meeting struct {
	hosts  string // path of the file with the addresses
	mu     sync.Mutex
	absent map[string]bool // by host name
	seen   map[netip.Addr]bool
}

// NewMeeting reads the kernels from the files in dir. own is the name of this kernel, and hosts the
// path of the file with the addresses of all.
func NewMeeting(dir, own, hosts string) (*Meeting, error) {
	text, err := os.ReadFile(filepath.Join(dir, Hostfile))
	if err != nil {
		return nil, err
	}
	m := &Meeting{hosts: hosts, absent: map[string]bool{}, seen: map[netip.Addr]bool{}}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 0 && f[0] != own {
			m.absent[f[0]] = true
		}
	}
	return m, nil
}

// Arrived records a connection from an address.
func (m *Meeting) Arrived(from netip.Addr) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen[from] = true
}

// tryAgain is the time between two attempts to connect to a kernel that may not have started.
const tryAgain = 50 * time.Millisecond

// Wait returns when all other kernels have been met, or when the context ends.
func (m *Meeting) Wait(ctx context.Context) error {
	for {
		addresses := readHosts(m.hosts)
		for name := range m.absent {
			if at, known := addresses[name]; known && (m.has(at) || reaches(ctx, at)) {
				delete(m.absent, name)
			}
		}
		if len(m.absent) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(tryAgain):
		}
	}
}

func (m *Meeting) has(at netip.Addr) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen[at]
}

func reaches(ctx context.Context, at netip.Addr) bool {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(at.String(), strconv.Itoa(Port)))
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// readHosts reads the addresses of names. Go's resolver would cache an old version of the file for
// seconds.
func readHosts(path string) map[string]netip.Addr {
	out := map[string]netip.Addr{}
	file, err := os.Open(path)
	if err != nil {
		return out
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		text, _, _ := strings.Cut(lines.Text(), "#")
		f := strings.Fields(text)
		if len(f) < 2 {
			continue
		}
		at, err := netip.ParseAddr(f[0])
		if err != nil || at.IsLoopback() {
			continue
		}
		for _, name := range f[1:] {
			if _, known := out[name]; !known {
				out[name] = at
			}
		}
	}
	return out
}
