package session

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/internal/resource"
)

func TestExplicitSlots(t *testing.T) {
	for name, c := range map[string]struct {
		flags slotFlags
		want  resource.Slots
		fails string
	}{
		"defaults":          {flags: slotFlags{cpu: "1", mem: "1g"}, want: resource.Slots{"cpu": 1000, "mem": 1 << 30}},
		"-r beats the flag": {flags: slotFlags{cpu: "1", mem: "1g", more: []string{"cpu=2", "cuda.shares=0.5"}}, want: resource.Slots{"cpu": 2000, "mem": 1 << 30, "cuda.shares": 500}},
		"twice":             {flags: slotFlags{cpu: "1", mem: "1g", more: []string{"x.device=1", "x.device=1"}}, fails: "twice"},
		"no amount":         {flags: slotFlags{cpu: "1", mem: "1g", more: []string{"cpu"}}, fails: "slot=amount"},
		"negative":          {flags: slotFlags{cpu: "-1", mem: "1g"}, fails: "not more than 0"},
		"zero":              {flags: slotFlags{cpu: "0", mem: "1g"}, fails: "not more than 0"},
		"half a device":     {flags: slotFlags{cpu: "1", mem: "1g", more: []string{"cuda.device=0.5"}}, fails: "whole units"},
		"no slot name":      {flags: slotFlags{cpu: "1", mem: "1g", more: []string{"../x=1"}}, fails: "not a slot name"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.flags.explicit()
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) || cli.ExitCode(err) != cli.ExitUsage {
					t.Errorf("got %v, %v", got, err)
				}
				return
			}
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Error(err, diff)
			}
		})
	}
}

func TestAcceleratorSlot(t *testing.T) {
	slots := func(names ...string) (all []client.SlotType) {
		for _, n := range append(names, "cpu", "mem", "cuda.mem", "cuda.device:1g.10gb-mig") {
			all = append(all, client.SlotType{Name: n})
		}
		return all
	}
	for name, c := range map[string]struct {
		amount  string
		types   []client.SlotType
		offered []string
		slot    string
		n       int64
		fails   string
	}{
		"share":                            {amount: "0.5", types: slots("mock.shares"), slot: "mock.shares", n: 500},
		"whole number of shares":           {amount: "2", types: slots("mock.shares"), slot: "mock.shares", n: 2000},
		"device":                           {amount: "2", types: slots("cuda.device"), slot: "cuda.device", n: 2},
		"whole prefers devices":            {amount: "1", types: slots("cuda.shares", "cuda.device"), slot: "cuda.device", n: 1},
		"fraction prefers shares":          {amount: "0.5", types: slots("cuda.device", "cuda.shares"), slot: "cuda.shares", n: 500},
		"only what agents offer":           {amount: "1", types: slots("cuda.device", "rocm.device"), offered: []string{"rocm.device"}, slot: "rocm.device", n: 1},
		"two vendors":                      {amount: "0.5", types: slots("cuda.shares", "mock.shares"), fails: "could mean cuda.shares or mock.shares; choose one, for example -r cuda.shares=0.5"},
		"fraction without any shares":      {amount: "0.5", types: slots("cuda.device"), fails: "none of cuda.device takes that"},
		"no accelerators":                  {amount: "1", types: slots(), fails: "the cluster has no accelerators"},
		"nonsense":                         {amount: "half", types: slots("cuda.shares"), fails: "not a number"},
		"negative":                         {amount: "-1", types: slots("cuda.shares"), fails: "not more than 0"},
		"several vendors, one with shares": {amount: "0.5", types: slots("cuda.device", "mock.shares"), slot: "mock.shares", n: 500},
	} {
		t.Run(name, func(t *testing.T) {
			offered := map[string]bool{}
			for _, s := range c.offered {
				offered[s] = true
			}
			slot, n, err := acceleratorSlot(c.amount, c.types, offered)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("got %s, %v", slot, err)
				}
				return
			}
			if slot != c.slot || n != c.n || err != nil {
				t.Errorf("got %s %d, %v; want %s %d", slot, n, err, c.slot, c.n)
			}
		})
	}
}

func TestParseMount(t *testing.T) {
	for text, want := range map[string]*client.MountInput{
		"data":                       {Vfolder: "data"},
		"data:/x":                    {Vfolder: "data", Target: "/x"},
		"data:/x:ro":                 {Vfolder: "data", Target: "/x", ReadOnly: true},
		"data:/x:rw":                 {Vfolder: "data", Target: "/x"},
		"data:ro":                    {Vfolder: "data", ReadOnly: true},
		"data/a/b:/x":                {Vfolder: "data", Subpath: "a/b", Target: "/x"},
		"":                           nil,
		":/x":                        nil,
		"data:x":                     nil,
		"data:/x:/y":                 nil,
		"data:/x:ro:ro":              nil,
		"0190-not-a-path:relative/x": nil,
	} {
		got, err := parseMount(text)
		switch {
		case want == nil && err == nil:
			t.Errorf("%q was accepted as %+v", text, got)
		case want != nil && (err != nil || got != *want):
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
}

func TestParsePorts(t *testing.T) {
	for text, want := range map[string][2]int{"8888": {8888, 8888}, "9000:80": {9000, 80}, "0:80": {0, 80}, "x": {}, "80:": {}, "70000": {}, "80:0": {}} {
		local, remote, err := parsePorts(text)
		if got := [2]int{local, remote}; got != want || (err != nil) != (want == [2]int{}) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
