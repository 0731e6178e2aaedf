package sshd

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Limits of the server.
const (
	maxConnections = 500
	maxStrangers   = 64 // connections that have not logged in
	maxFrom        = 64 // connections of one address
	maxOf          = 32 // connections of one user; rclone opens a dozen
	maxChannels    = 10 // of one connection; the default of OpenSSH
	maxTries       = 6  // of one connection
	// maxWrong is the number of wrong passwords per address within the window, as on the login
	// page. A user who has logged in from the address has a count of their own there, so that
	// other users of the address cannot lock them out.
	maxWrong      = 50
	maxWrongKnown = 10
	wrongWindow   = 15 * time.Minute
	maxKept       = 10_000 // remembered addresses, and users at addresses
)

// guard counts connections and wrong passwords.
type guard struct {
	mu        sync.Mutex
	open      int
	strangers int
	from      map[string]int
	of        map[string]int
	wrong     map[string][]time.Time     // by address, or by address and user
	users     map[string]map[string]bool // users who have logged in, by address
	seen      int                        // number of users in users
}

func newGuard() *guard {
	return &guard{from: map[string]int{}, of: map[string]int{}, wrong: map[string][]time.Time{}, users: map[string]map[string]bool{}}
}

// enter counts a connection, or returns the reason why the limit of connections is reached.
func (g *guard) enter(from string, now time.Time) (why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if wait := g.retryAfter(from, maxWrong, now); wait > 0 && len(g.users[from]) == 0 {
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

// leave ends the connection that enter counted; user is "" if it did not log in.
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

// addUser counts a connection of a user, and reports whether the user has fewer than the
// maximum.
func (g *guard) addUser(user string) bool {
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

// loggedIn records that a user has logged in from an address.
func (g *guard) loggedIn(from, user string) {
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
func (g *guard) counted(from, user string) (key string, most int) {
	if g.users[from][user] {
		return from + " " + user, maxWrongKnown
	}
	return from, maxWrong
}

// failed counts a wrong password.
func (g *guard) failed(from, user string, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.wrong) >= maxKept {
		for other := range g.wrong {
			g.retryAfter(other, maxWrong, now)
		}
		if len(g.wrong) >= maxKept {
			clear(g.wrong)
		}
	}
	key, _ := g.counted(from, user)
	g.wrong[key] = append(g.wrong[key], now)
}

// blocked reports whether too many wrong passwords were sent: by the user if they have logged in
// from the address before, and otherwise by anyone else at the address.
func (g *guard) blocked(from, user string, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	key, most := g.counted(from, user)
	return g.retryAfter(key, most, now) > 0
}

// retryAfter returns how long the next password must wait. Wrong passwords older than the window
// are dropped.
func (g *guard) retryAfter(key string, most int, now time.Time) time.Duration {
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

// network returns the unit of addresses that is counted: a /64 for IPv6, because one host has
// all of it.
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
