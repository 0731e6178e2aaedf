package door

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// What the door holds at most.
const (
	maxConnections = 500
	maxStrangers   = 64 // connections that have not logged in
	maxFrom        = 64 // connections of one address
	maxOf          = 32 // connections of one user; rclone opens a dozen
	maxChannels    = 10 // of one connection, as OpenSSH has it
	maxTries       = 6  // of one connection
	// maxWrong is how many wrong passwords an address may show within the window,
	// as many as it may at the login page.
	maxWrong    = 50
	wrongWindow = 15 * time.Minute
	maxKept     = 10_000 // addresses that are remembered
)

// guard counts who is there, and who guesses.
type guard struct {
	mu        sync.Mutex
	open      int
	strangers int
	from      map[string]int
	of        map[string]int
	wrong     map[string][]time.Time
}

func newGuard() *guard {
	return &guard{from: map[string]int{}, of: map[string]int{}, wrong: map[string][]time.Time{}}
}

// enter counts a connection, or says why there is no room for it.
func (g *guard) enter(from string, now time.Time) (why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if wait := g.waits(from, now); wait > 0 {
		return fmt.Sprintf("too many wrong passwords from this address: try again in %v", wait.Round(time.Second))
	}
	if g.open >= maxConnections || g.strangers >= maxStrangers || g.from[from] >= maxFrom {
		return "too many connections: try again later"
	}
	g.open++
	g.strangers++
	g.from[from]++
	return ""
}

// leave ends what enter counted; user is "" for who did not log in.
func (g *guard) leave(from, user string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open--
	less(g.from, from)
	if user == "" {
		g.strangers--
	} else {
		less(g.of, user)
	}
}

// known counts a connection as its user's, if he has not too many.
func (g *guard) known(user string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of[user] >= maxOf {
		return false
	}
	g.strangers--
	g.of[user]++
	return true
}

func less(counts map[string]int, key string) {
	if counts[key]--; counts[key] <= 0 {
		delete(counts, key)
	}
}

// guessed counts a wrong password.
func (g *guard) guessed(from string, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.wrong) >= maxKept {
		for other := range g.wrong {
			g.waits(other, now)
		}
		if len(g.wrong) >= maxKept {
			clear(g.wrong)
		}
	}
	g.wrong[from] = append(g.wrong[from], now)
}

// shut tells whether an address has guessed too often.
func (g *guard) shut(from string, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waits(from, now) > 0
}

// waits is how long an address has to wait; what is older than the window is
// forgotten.
func (g *guard) waits(from string, now time.Time) time.Duration {
	list := g.wrong[from]
	for len(list) > 0 && now.Sub(list[0]) >= wrongWindow {
		list = list[1:]
	}
	if len(list) == 0 {
		delete(g.wrong, from)
		return 0
	}
	g.wrong[from] = list
	if len(list) < maxWrong {
		return 0
	}
	return list[len(list)-maxWrong].Add(wrongWindow).Sub(now)
}

// network is what counts as one address: a host of IPv6 has a whole /64.
func network(peer net.Addr) string {
	at, err := netip.ParseAddrPort(peer.String())
	if err != nil {
		return peer.String()
	}
	a := at.Addr().Unmap().WithZone("")
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.String()
		}
	}
	return a.String()
}
