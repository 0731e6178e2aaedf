package netlist

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"10.1.0.0/16": "10.1.0.0/16", "10.1.2.3/16": "10.1.0.0/16", " 10.1.2.3 ": "10.1.2.3", "10.1.2.3/32": "10.1.2.3",
		"10.1.2.3:443": "10.1.2.3:443", "10.1.0.0/16:5000": "10.1.0.0/16:5000", "0.0.0.0/0": "0.0.0.0/0",
		"": "", "registry.local": "", "10.1.2.3:0": "", "10.1.2.3:": "", "10.1.2.3:70000": "", "10.1.2.3:https": "",
		"fd00::/8": "", "::1": "", "10.1.2.3/33": "", "169.254.169.254": "", "169.254.0.0/16": "", "169.254.1.0/24:80": "",
	} {
		got, err := Parse([]string{text})
		if want == "" {
			if !errdefs.IsInvalidArgument(err) {
				t.Errorf("%q: %v, %v", text, got, err)
			}
		} else if err != nil || len(got) != 1 || got[0].String() != want {
			t.Errorf("%q: %v, %v, want %s", text, got, err, want)
		}
	}
	if got, err := Parse([]string{"10.1.2.3", "10.1.2.3/32"}); err != nil || len(got) != 1 {
		t.Errorf("the same twice: %v, %v", got, err)
	}
	if _, err := Parse(make([]string, MaxEntries+1)); !errdefs.IsInvalidArgument(err) {
		t.Errorf("too many: %v", err)
	}
}

func TestOpen(t *testing.T) {
	list, err := Parse([]string{"10.0.0.0/8", "10.1.2.0/24", "192.168.7.0/24:443", "0.0.0.0/0:53"})
	if err != nil {
		t.Fatal(err)
	}
	prefixes := func(texts ...string) (all []netip.Prefix) {
		for _, s := range texts {
			all = append(all, netip.MustParsePrefix(s))
		}
		return all
	}
	for _, tt := range []struct {
		name   string
		port   uint16
		denied []netip.Prefix
		want   string
	}{
		{"all of it", 0, nil, "10.0.0.0-10.255.255.255"},
		{"the same is denied", 0, prefixes("10.0.0.0/8"), "10.0.0.0-10.255.255.255"},
		{"more is denied", 0, prefixes("0.0.0.0/0"), "10.0.0.0-10.255.255.255"},
		{"a part is denied", 0, prefixes("10.1.0.0/16"), "10.0.0.0-10.0.255.255 10.1.2.0-10.1.2.255 10.2.0.0-10.255.255.255"},
		{"within a part", 0, prefixes("10.1.2.255/32", "10.0.0.0/8"), "10.0.0.0-10.1.2.254 10.1.3.0-10.255.255.255"},
		{"a port", 443, prefixes("192.168.0.0/16"), "192.168.7.0-192.168.7.255"},
		{"everything", 53, nil, "0.0.0.0-255.255.255.255"},
		{"no such port", 80, nil, ""},
	} {
		var got []string
		for _, r := range Open(list, tt.port, tt.denied) {
			got = append(got, r.First.String()+"-"+r.Last.String())
		}
		if text := strings.Join(got, " "); text != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, text, tt.want)
		}
	}
	if got := Union(prefixes("10.0.0.0/9", "10.128.0.0/9", "255.0.0.0/8", "10.3.0.0/16")); len(got) != 2 || got[1].Last.String() != "255.255.255.255" {
		t.Errorf("union %v", got)
	}
	if got := Ports(list); !slices.Equal(got, []uint16{0, 443, 53}) {
		t.Errorf("ports %v", got)
	}
}
