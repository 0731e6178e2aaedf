package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// faults are the requested faults by name. A file with the name of a fault in the directory has
// precedence over the configuration.
//
//	crash      exit the process; the file is removed first, so that this happens
//	           once, unless it contains "always"
//	hang       calls block while the file exists; it contains names of calls, or
//	           nothing for all
//	lie        report invalid devices: negative, nan, duplicate, million, foreign
//	unplug     numbers of devices to remove
//	look       the result of scans: a state of the contract and a message; no
//	           devices are shown in the meantime
//	unhealthy  one "id state message" per line, with a state of the contract
type faults struct {
	mu     sync.Mutex
	dir    string
	preset map[string]string
}

var faultNames = []string{"crash", "hang", "lie", "look", "unplug", "unhealthy"}

func checkFaults(m map[string]string) error {
	for name := range m {
		if !slices.Contains(faultNames, name) {
			return fmt.Errorf("config_json: faults: %q is none of %v", name, faultNames)
		}
	}
	return nil
}

// configure sets the configured faults. A directory from the environment has precedence.
func (f *faults) configure(dir string, preset map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.preset = preset
	if f.dir == "" || os.Getenv("BERTH_MOCK_FAULTS") == "" {
		f.dir = dir
	}
}

func (f *faults) get(name string) (text, file string, on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dir != "" {
		file = filepath.Join(f.dir, name)
		if b, err := os.ReadFile(file); err == nil {
			return strings.TrimSpace(string(b)), file, true
		}
	}
	text, on = f.preset[name]
	return text, "", on
}

// of returns the values of these faults, for comparison.
func (f *faults) of(names ...string) string {
	var all strings.Builder
	for _, n := range names {
		text, _, on := f.get(n)
		fmt.Fprintf(&all, "%s %v %q\n", n, on, text)
	}
	return all.String()
}

// strike crashes or blocks a call on request. It ignores the call's context, as a plugin that hangs
// does.
func (f *faults) strike(call string) {
	f.crash()
	for {
		calls, _, on := f.get("hang")
		if !on || calls != "" && !slices.Contains(strings.Fields(calls), call) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (f *faults) crash() {
	text, file, on := f.get("crash")
	if !on {
		return
	}
	if file != "" && text != "always" {
		_ = os.Remove(file)
	}
	panic("crash, as ordered")
}

func (f *faults) unplugged() []int {
	text, _, _ := f.get("unplug")
	var out []int
	for _, w := range strings.Fields(text) {
		if n, err := strconv.Atoi(w); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// look returns the requested result of scans, or nil.
func (f *faults) look() *pb.Look {
	text, _, on := f.get("look")
	state, message, _ := strings.Cut(text, " ")
	if n, ok := pb.Look_State_value[strings.ToUpper(state)]; on && ok {
		return &pb.Look{State: pb.Look_State(n), Message: message}
	}
	return nil
}

// ail applies unhealthy states to a device.
func (f *faults) ail(d *pb.Device) {
	text, _, _ := f.get("unhealthy")
	for line := range strings.Lines(text) {
		w := strings.Fields(line)
		if len(w) < 2 || w[0] != d.Id {
			continue
		}
		h, ok := pb.Health_value["HEALTH_"+strings.ToUpper(w[1])]
		if !ok {
			continue
		}
		d.Health, d.HealthMessage = pb.Health(h), strings.Join(w[2:], " ")
		if d.Health != pb.Health_HEALTH_HEALTHY && d.Health != pb.Health_HEALTH_DEGRADED {
			d.Allocatable, d.RejectReasons = false, []string{"device is " + strings.ToLower(w[1])}
		}
	}
}

// lie corrupts a snapshot in the requested way.
func (f *faults) lie(s *pb.DeviceSnapshot) {
	kind, _, on := f.get("lie")
	if !on {
		return
	}
	if kind == "million" {
		for i := range 1_000_000 {
			s.Devices = append(s.Devices, &pb.Device{Id: strconv.Itoa(i)})
		}
	}
	if len(s.Devices) == 0 {
		return
	}
	d := s.Devices[0]
	switch kind {
	case "negative":
		d.Capacity[whole] = "-4"
	case "nan":
		d.Capacity[whole] = "NaN"
	case "duplicate":
		s.Devices = append(s.Devices, d)
	case "foreign":
		d.Capacity = map[string]string{"cuda.device": "8"}
	}
}
