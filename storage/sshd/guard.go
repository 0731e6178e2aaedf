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
	// as many as it may at the login page. A user who has logged in from the address
	// has a count of their own there, so that others at it do not lock them out.
	maxWrong      = 50
	maxWrongKnown = 10
	wrongWindow   = 15 * time.Minute
	maxKept       = 10_000 // addresses, and users at addresses, that are remembered
)

// guard counts who is there, and who guesses.
type guard struct {
	mu        sync.Mutex
	open      int
	strangers int
	from      map[string]int
	of        map[string]int
	wrong     map[string][]time.Time     // by address, or address and user
	users     map[string]map[string]bool // who has logged in, by address
	seen      int                        // users in users
}

func newGuard() *guard {
	return &guard{from: map[string]int{}, of: map[string]int{}, wrong: map[string][]time.Time{}, users: map[string]map[string]bool{}}
}

// enter counts a connection, or says why there is no room for it.
func (g *guard) enter(from string, now time.Time) (why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if wait := g.waits(from, maxWrong, now); wait > 0 && len(g.users[from]) == 0 {
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

// known counts a connection as its user's, if they have not too many.
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

// welcome notes that a user has logged in from an address.
func (g *guard) welcome(from, user string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.users[from][user] {
		return
	}
	if g.seen++; g.seen > maxKept {
		clear(g.users)
		g.seen = 1
	}
	if g.users[from] == nil {
		g.users[from] = map[string]bool{}
	}
	g.users[from][user] = true
}

// counted returns under which key a user's wrong passwords count, and how many may be
// within the window.
func (g *guard) counted(from, user string) (key string, most int) {
	if g.users[from][user] {
		return from + " " + user, maxWrongKnown
	}
	return from, maxWrong
}

// guessed counts a wrong password.
func (g *guard) guessed(from, user string, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.wrong) >= maxKept {
		for other := range g.wrong {
			g.waits(other, maxWrong, now)
		}
		if len(g.wrong) >= maxKept {
			clear(g.wrong)
		}
	}
	key, _ := g.counted(from, user)
	g.wrong[key] = append(g.wrong[key], now)
}

// shut reports whether too many wrong passwords were shown: by the user at the address
// if they have logged in from it before, and else by strangers at the address.
func (g *guard) shut(from, user string, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	key, most := g.counted(from, user)
	return g.waits(key, most, now) > 0
}

// waits is how long the next password has to wait; what is older than the window is
// forgotten.
func (g *guard) waits(key string, most int, now time.Time) time.Duration {
	list := g.wrong[key]
	for len(list) > 0 && now.Sub(list[0]) >= wrongWindow {
		list = list[1:]
	}
	if len(list) == 0 {
		delete(g.wrong, key)
		return 0
	}
	g.wrong[key] = list
	if len(list) < most {
		return 0
	}
	return list[len(list)-most].Add(wrongWindow).Sub(now)
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
