package sshserver

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

func TestGuardCounts(t *testing.T) {
	now := time.Unix(1e9, 0)
	enter := func(g *Guard, n int, from func(int) string, known bool) (in int) {
		for i := range n {
			if g.Enter(from(i), now) != "" {
				continue
			}
			in++
			if known && !g.AddUser(fmt.Sprint(i)) {
				t.Error("a user's first connection is refused")
			}
		}
		return in
	}
	other := func(i int) string { return fmt.Sprint(i) }
	one := func(int) string { return "one" }
	for _, c := range []struct {
		name  string
		known bool
		from  func(int) string
		want  int
	}{
		{"all together", true, other, 500},
		{"not logged in yet", false, other, 64},
		{"of one address", true, one, 64},
	} {
		g := NewGuard(Limits{500, 64, 64, 32})
		if got := enter(g, 600, c.from, c.known); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
		user := ""
		if c.known {
			user = "0"
		}
		g.Leave(c.from(0), user)
		if why := g.Enter(c.from(0), now); why != "" {
			t.Errorf("%s: after one left: %s", c.name, why)
		}
	}
	g := NewGuard(Limits{500, 64, 64, 32}) // users are counted over all addresses
	for i := range 33 {
		if why := g.Enter(other(i), now); why != "" {
			t.Fatal(why)
		}
		if got := g.AddUser("ann"); got != (i < 32) {
			t.Errorf("connection %d of a user: %v", i+1, got)
		}
	}
	g.Leave(other(32), "") // the rejected client never logged in
	for i := range 32 {
		g.Leave(other(i), "ann")
	}
	if g.open != 0 || g.strangers != 0 || len(g.from) != 0 || len(g.of) != 0 {
		t.Errorf("all have left, but %d, %d, %v, %v", g.open, g.strangers, g.from, g.of)
	}
}

func TestGuardOfGuesses(t *testing.T) {
	g, now := NewGuard(Limits{500, 64, 64, 32}), time.Unix(1e9, 0)
	for i := range 50 {
		if g.Blocked("a", "eve", now) || g.Enter("a", now) != "" {
			t.Fatalf("refused after %d wrong passwords", i)
		}
		g.Leave("a", "")
		g.Failed("a", "eve", now)
		now = now.Add(time.Second)
	}
	if why := g.Enter("a", now); !g.Blocked("a", "eve", now) || !strings.Contains(why, "14m10s") {
		t.Errorf("after 50: %q", why)
	}
	if g.Blocked("b", "eve", now) || g.Enter("b", now) != "" {
		t.Error("another address is refused")
	}
	now = now.Add(15*time.Minute - 51*time.Second)
	if !g.Blocked("a", "eve", now) {
		t.Error("let in a second too early")
	}
	if now = now.Add(time.Second); g.Blocked("a", "eve", now) {
		t.Error("the first is old, and still it waits")
	}
	g.Failed("a", "eve", now)
	if !g.Blocked("a", "eve", now) {
		t.Error("one more is 50 again")
	}
	if now = now.Add(wrongWindow); g.Blocked("a", "eve", now) || len(g.wrong) != 0 {
		t.Errorf("old failures are kept: %v", g.wrong)
	}
	for i := range maxKept + 10 {
		g.Failed(fmt.Sprint(i), "eve", now)
	}
	if len(g.wrong) > maxKept {
		t.Errorf("%d addresses are remembered", len(g.wrong))
	}
}

func TestNetwork(t *testing.T) {
	for peer, want := range map[string]string{
		"192.0.2.1:5":              "192.0.2.1",
		"[::ffff:192.0.2.1]:5":     "192.0.2.1",
		"[2001:db8:1:2:3:4:5:6]:5": "2001:db8:1:2::/64",
		"[2001:db8:1:2::1]:9":      "2001:db8:1:2::/64",
		"[fe80::1%eth0]:9":         "fe80::/64",
	} {
		at, err := net.ResolveTCPAddr("tcp", peer)
		if err != nil {
			t.Fatal(err)
		}
		if got := Network(at); got != want {
			t.Errorf("%s counts as %s, want %s", peer, got, want)
		}
	}
}

// A user who has logged in from an address is not locked out by others at that address, and their
// own wrong passwords are counted separately.
func TestGuardOfKnownUsers(t *testing.T) {
	g, now := NewGuard(Limits{500, 64, 64, 32}), time.Unix(1e9, 0)
	g.LoggedIn("a", "ann")
	for range MaxWrong {
		g.Failed("a", "eve", now)
	}
	if !g.Blocked("a", "eve", now) || !g.Blocked("a", "bob", now) {
		t.Error("unknown clients at the address are not rejected")
	}
	if g.Blocked("a", "ann", now) || g.Enter("a", now) != "" {
		t.Error("unknown clients lock out a user who has logged in from the address")
	}
	for range maxWrongKnown {
		g.Failed("a", "ann", now)
	}
	if !g.Blocked("a", "ann", now) {
		t.Errorf("%d wrong passwords for a known user", maxWrongKnown)
	}
	for i := range maxKept + 10 {
		g.LoggedIn(fmt.Sprint(i), "ann")
	}
	if len(g.users) > maxKept {
		t.Errorf("users at %d addresses are remembered", len(g.users))
	}
}
