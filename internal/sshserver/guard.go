package sshserver

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Limits of the connections of a server.
type Limits struct {
	Connections int
	Strangers   int // connections that have not logged in
	PerAddress  int
	PerUser     int
}

// Limits of every server.
const (
	MaxTries = 6 // logins of one connection
	// MaxWrong is the number of wrong passwords per address within the window, as on the login
	// page. A user who has logged in from the address has a count of their own there, so that
	// other users of the address cannot lock them out.
	MaxWrong      = 50
	maxWrongKnown = 10
	wrongWindow   = 15 * time.Minute
	maxKept       = 10_000 // remembered addresses, and users at addresses
)

// Guard counts connections and wrong passwords. NewGuard creates one.
type Guard struct {
	limits Limits

	mu        sync.Mutex
	open      int
	strangers int
	from      map[string]int
	of        map[string]int
	wrong     map[string][]time.Time     // by address, or by address and user
	users     map[string]map[string]bool // users who have logged in, by address
	seen      int                        // number of users in users
}

// NewGuard returns a guard that has counted nothing.
func NewGuard(l Limits) *Guard {
	return &Guard{limits: l, from: map[string]int{}, of: map[string]int{}, wrong: map[string][]time.Time{}, users: map[string]map[string]bool{}}
}

// Counts returns the number of open connections, and of those that have not logged in.
func (g *Guard) Counts() (open, strangers int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open, g.strangers
}

// Wrong returns the number of remembered wrong passwords of an address.
func (g *Guard) Wrong(from string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.wrong[from])
}

// Enter counts a connection, or returns the reason why the limit of connections is reached.
func (g *Guard) Enter(from string, now time.Time) (why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if wait := g.retryAfter(from, MaxWrong, now); wait > 0 && len(g.users[from]) == 0 {
		return fmt.Sprintf("too many wrong passwords from this address: try again in %v", wait.Round(time.Second))
	}
	if g.open >= g.limits.Connections || g.strangers >= g.limits.Strangers || g.from[from] >= g.limits.PerAddress {
		return "too many connections: try again later"
	}
	g.open++
	g.strangers++
	g.from[from]++
	return ""
}

// Leave ends the connection that Enter counted; user is "" if it did not log in.
func (g *Guard) Leave(from, user string) {
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

// AddUser counts a connection of a user, and reports whether the user has fewer than the
// maximum.
func (g *Guard) AddUser(user string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of[user] >= g.limits.PerUser {
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

// LoggedIn records that a user has logged in from an address.
func (g *Guard) LoggedIn(from, user string) {
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

// counted returns the key under which a user's wrong passwords count, and the limit within the
// window.
func (g *Guard) counted(from, user string) (key string, most int) {
	if g.users[from][user] {
		return from + " " + user, maxWrongKnown
	}
	return from, MaxWrong
}

// Failed counts a wrong password.
func (g *Guard) Failed(from, user string, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.wrong) >= maxKept {
		for other := range g.wrong {
			g.retryAfter(other, MaxWrong, now)
		}
		if len(g.wrong) >= maxKept {
			clear(g.wrong)
		}
	}
	key, _ := g.counted(from, user)
	g.wrong[key] = append(g.wrong[key], now)
}

// Blocked reports whether too many wrong passwords were sent: by the user if they have logged in
// from the address before, and otherwise by anyone else at the address.
func (g *Guard) Blocked(from, user string, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	key, most := g.counted(from, user)
	return g.retryAfter(key, most, now) > 0
}

// retryAfter returns how long the next password must wait. Wrong passwords older than the window
// are dropped.
func (g *Guard) retryAfter(key string, most int, now time.Time) time.Duration {
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

// Network returns the unit of addresses that is counted: a /64 for IPv6, because one host has
// all of it.
func Network(peer net.Addr) string {
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
