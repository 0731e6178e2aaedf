package main

import "testing"

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		ok   bool
	}{
		"stays":          {[]string{"-namespace", "berth", "-id", "k1", "-address", "/s"}, true},
		"start":          {[]string{"-namespace", "berth", "-id", "k1", "-address", "/s", "start"}, false},
		"delete":         {[]string{"-namespace", "berth", "-id", "k1", "-bundle", "/b", "delete"}, false},
		"version":        {[]string{"-v"}, false},
		"info":           {[]string{"-info"}, false},
		"debug":          {[]string{"-namespace", "berth", "-id", "k1", "-address", "/s", "-debug"}, false},
		"no namespace":   {[]string{"-id", "k1", "-address", "/s"}, false},
		"nothing at all": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, ok := parse(tc.args)
			if ok != tc.ok {
				t.Fatalf("ours: %t, want %t", ok, tc.ok)
			}
			if ok && (s != server{namespace: "berth", id: "k1", containerd: "/s"}) {
				t.Errorf("parsed %+v", s)
			}
		})
	}
}
