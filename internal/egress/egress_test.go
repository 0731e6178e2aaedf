package egress

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
)

func TestAddresses(t *testing.T) {
	policy, err := Parse([]string{"10.1.0.0/16", "169.254.7.7"})
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]struct{ public, private bool }{
		"8.8.8.8":                  {true, true},
		"2606:4700::1111":          {true, true},
		"127.0.0.1":                {false, true},
		"127.8.9.10":               {false, true},
		"::1":                      {false, true},
		"10.0.0.1":                 {false, true},
		"10.1.2.3":                 {true, true}, // of the operator's list
		"172.20.0.1":               {false, true},
		"192.168.1.1":              {false, true},
		"100.64.0.1":               {false, true},
		"fd12::1":                  {false, true},
		"169.254.169.254":          {false, false},
		"169.254.7.7":              {true, true}, // of the operator's list
		"fe80::1":                  {false, false},
		"fe80::1%eth0":             {false, false},
		"fd00:ec2::254":            {false, false},
		"100.100.100.200":          {false, false},
		"0.0.0.0":                  {false, false},
		"::":                       {false, false},
		"255.255.255.255":          {false, false},
		"224.0.0.1":                {false, false},
		"::ffff:127.0.0.1":         {false, true},
		"::ffff:169.254.169.254":   {false, false},
		"::127.0.0.1":              {false, true},
		"64:ff9b::7f00:1":          {false, true},
		"64:ff9b::a9fe:a9fe":       {false, false},
		"64:ff9b::808:808":         {true, true},
		"2002:7f00:1::":            {false, true},
		"2002:a9fe:a9fe::":         {false, false},
		"2002:808:808::":           {true, true},
		"64:ff9b:1::7f00:1":        {false, false}, // NAT64 of one's own network
		"64:ff9b:1:a9fe:a9:fe00::": {false, false},
		"2001:0:4136:e378::":       {false, false}, // Teredo
		"2001:4860:4860::8888":     {true, true},
	} {
		a := netip.MustParseAddr(address)
		if got := policy.Check(Public, a) == nil; got != want.public {
			t.Errorf("%s for everybody: %v, want %v", address, got, want.public)
		}
		if got := policy.Check(Private, a) == nil; got != want.private {
			t.Errorf("%s for administrators: %v, want %v", address, got, want.private)
		}
	}
}

func TestParse(t *testing.T) {
	for _, bad := range []string{"", "10.0.0.0/99", "a b", "http://x", "host:9000"} {
		if _, err := Parse([]string{bad}); !errdefs.IsInvalidArgument(err) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// A name is checked by the address that it resolves to when it is dialled.
func TestDial(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	defer server.Close()
	byName := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	for name, c := range map[string]struct {
		allow []string
		reach Reach
		url   string
		open  bool
	}{
		"an address":                                  {nil, Public, server.URL, false},
		"a name":                                      {nil, Public, byName, false},
		"a name that the operator allows":             {[]string{"LOCALHOST"}, Public, byName, true},
		"another name of an allowed server":           {[]string{"localhost"}, Public, server.URL, false},
		"a network that the operator allows":          {[]string{"127.0.0.0/8"}, Public, server.URL, true},
		"a network that the operator allows, by name": {[]string{"127.0.0.0/8", "::1"}, Public, byName, true},
		"for administrators":                          {nil, Private, server.URL, true},
	} {
		t.Run(name, func(t *testing.T) {
			policy, err := Parse(c.allow)
			if err != nil {
				t.Fatal(err)
			}
			client := http.Client{Transport: policy.Transport(c.reach)}
			r, err := client.Get(c.url)
			if err == nil {
				r.Body.Close()
			}
			var refused *Refused
			if c.open != (err == nil) || !c.open && !errors.As(err, &refused) {
				t.Errorf("%v, want it open: %v", err, c.open)
			}
		})
	}
}

// An error about a host that any user can name reveals nothing about the inner network.
func TestErrorsNameNoAddress(t *testing.T) {
	policy, err := Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: policy.Transport(Public)}
	for _, url := range []string{"http://localhost:1", "http://127.0.0.1:1", "http://0x7f000001:1", "http://nobody.invalid"} {
		r, err := client.Get(url)
		if err == nil {
			r.Body.Close()
			t.Errorf("%s was reached", url)
			continue
		}
		if said := Plain(err); strings.ContainsAny(said, ":[]") || strings.Contains(said, "127.") {
			t.Errorf("%s: %q", url, said)
		}
	}
	open, err := Parse([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	client.Transport = open.Transport(Public)
	if _, err = client.Get("http://" + address); Plain(err) != "connection refused" {
		t.Errorf("a closed port: %q", Plain(err))
	}
}

// Servers that another server names are inside only if that one is inside too.
func TestBeside(t *testing.T) {
	for _, c := range []struct {
		home, to string
		want     bool
	}{
		{"203.0.113.1", "198.51.100.1", true},
		{"203.0.113.1", "10.0.0.1", false},
		{"203.0.113.1", "127.0.0.1", false},
		{"", "10.0.0.1", false},
		{"", "198.51.100.1", true},
		{"10.0.0.1", "192.168.0.1", true},
		{"10.0.0.1", "127.0.0.1", false},
		{"10.0.0.1", "::ffff:127.0.0.1", false},
		{"127.0.0.1", "127.0.0.1", true},
		{"127.0.0.1", "10.0.0.1", true},
		{"127.0.0.1", "169.254.169.254", false},
		{"10.0.0.1", "fd00:ec2::254", false},
	} {
		home, _ := netip.ParseAddr(c.home)
		if err := CheckBeside(home, netip.MustParseAddr(c.to)); (err == nil) != c.want {
			t.Errorf("from %s to %s: %v", c.home, c.to, err)
		}
	}
}
