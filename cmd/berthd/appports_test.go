package main

import (
	"net"
	"strconv"
	"testing"

	"github.com/berthhq/berth/gateway"
)

func TestRangesOfPorts(t *testing.T) {
	for text, want := range map[string]struct {
		host        string
		first, last int // 0: the value is rejected
	}{
		"20000-20999":           {"", 20000, 20999},
		"20000-20000":           {"", 20000, 20000},
		"192.0.2.1:20000-20001": {"192.0.2.1", 20000, 20001},
		"[::1]:20000-20001":     {"::1", 20000, 20001},
		"20000":                 {},
		"20001-20000":           {},
		"0-10":                  {},
		"60000-70000":           {},
		"20000-30000":           {}, // one more than the limit
		"a-b":                   {},
		"":                      {},
	} {
		host, r, err := parsePorts(text)
		switch {
		case want.first == 0 && err == nil:
			t.Errorf("%q is accepted: %+v", text, r)
		case want.first != 0 && (err != nil || host != want.host || r.First != want.first || r.Last != want.last):
			t.Errorf("%q: %q, %+v, %v", text, host, r, err)
		}
	}
}

// A range with a port in use is rejected, and none of its ports stays open.
func TestListenOnARange(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	last := taken.Addr().(*net.TCPAddr).Port
	flags := portFlags{ports: strconv.Itoa(last-1) + "-" + strconv.Itoa(last), url: "http://ports.localhost"}
	cfg := gateway.Config{}
	if err := flags.listen(&cfg, "127.0.0.1"); err == nil {
		t.Fatal("it listens on a port that is taken")
	}
	for _, l := range cfg.PortListeners {
		if _, err := l.Accept(); err == nil {
			t.Errorf("%s stays taken", l.Addr())
		}
	}
	if err := (portFlags{ports: "20000-20001"}).listen(&cfg, ""); err == nil {
		t.Error("ports without a URL are accepted")
	}
	if err := (portFlags{url: "http://ports.localhost"}).listen(&cfg, ""); err == nil {
		t.Error("a URL without ports is accepted")
	}
}
