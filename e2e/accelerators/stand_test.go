package accelerators

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
	"github.com/berthhq/berth/internal/fixture"
	"github.com/berthhq/berth/internal/resource"
)

// stand is a machine of the platform, and the sessions on its devices.
type stand struct {
	row
	m *fixture.Machine

	first, second, all string // sessions; "all" requests every device with the slot
	on                 string // device of the first session
}

// load reads a machine. The table of rows must have a row for it.
func load(t *testing.T, name string) *stand {
	t.Helper()
	m, err := fixture.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	r, ok := rows[name]
	if !ok {
		t.Errorf("the machine %s has no row in rows_test.go with the devices that a session sees", name)
		return nil
	}
	return &stand{row: r, m: m}
}

// asks returns a request for a session with this number of devices.
func (s *stand) asks(amount string) client.CreateSessionInput {
	in := cluster.Interactive()
	in.Slots = cluster.Slots("cpu", "0.01", "mem", "32m", s.slot, amount)
	return in
}

type device struct {
	DeviceID      string
	Health        string
	HealthMessage string
	Allocatable   bool
	RejectReasons []string
	Capacity      resource.Slots
	Occupied      resource.Slots
}

// devices returns the devices of the plugin by the plugin's ids.
func (s *stand) devices(u *cluster.User) map[string]device {
	var out struct {
		Devices struct{ Edges []struct{ Node device } }
	}
	u.Query(`query($plugin: String!) { devices(first: 100, where: {plugin: $plugin}) { edges { node {
		deviceId: deviceId health healthMessage allocatable rejectReasons capacity occupied } } } }`, map[string]any{"plugin": s.plugin}, &out)
	found := map[string]device{}
	for _, e := range out.Devices.Edges {
		found[strings.TrimPrefix(e.Node.DeviceID, s.plugin+":")] = e.Node
	}
	return found
}

// complete returns an error that lists the devices that differ from the machine's file.
func (s *stand) complete(u *cluster.User) error {
	all, allocatable, want := s.devices(u), 0, s.m.Expect
	sum := resource.Slots{}
	for id, d := range all {
		if d.Allocatable {
			allocatable++
			sum.Add(d.Capacity)
		} else if len(d.RejectReasons) == 0 {
			return fmt.Errorf("%s cannot be allocated, and no reason is shown", id)
		}
	}
	if len(all) != want.Devices || allocatable != want.Allocatable {
		return fmt.Errorf("%d of %d devices are given away, want %d of %d", allocatable, len(all), want.Allocatable, want.Devices)
	}
	for slot, amount := range want.Slots {
		if got := sum.Strings()[slot]; got != amount {
			return fmt.Errorf("%s of %s are offered, want %s", got, slot, amount)
		}
	}
	return nil
}

// total returns the total amount of the slot.
func (s *stand) total() string {
	if amount, ok := s.m.Expect.Slots[s.slot]; ok {
		return amount
	}
	return fmt.Sprint(s.m.Expect.Allocatable)
}

// held returns the device of a session, and the amount that the session has of it.
func (s *stand) held(t *testing.T, u *cluster.User, session string) string {
	t.Helper()
	var held []string
	for _, a := range u.Show(session).Kernels[0].Allocations {
		if a.Slot == s.slot && a.FreedAt == nil && a.Device != nil {
			held = append(held, strings.TrimPrefix(a.Device.DeviceID, s.plugin+":"))
		}
	}
	if len(held) != 1 {
		t.Fatalf("the session holds %v, want one device", held)
	}
	return held[0]
}

// look inspects the device from inside a session that has one, and returns the device.
func (s *stand) look(t *testing.T, u *cluster.User, session string) string {
	t.Helper()
	u.Until(session, "RUNNING")
	on, i := s.held(t, u, session), 0
	if s.ids != nil {
		if i = slices.Index(s.ids(s.m), on); i < 0 {
			t.Fatalf("the session got %s, which is none of %v", on, s.ids(s.m))
		}
	}
	want := s.sees(i)
	want.env = strings.ReplaceAll(want.env, "{id}", on)
	resources := inside(t, u, session, want)
	if line := strings.ToUpper(strings.ReplaceAll(s.plugin, "-", "_")) + "_0_DEVICE=" + on + "\n"; !strings.Contains(resources, line) {
		t.Errorf("the container's resources are\n%swant %s", resources, line)
	}
	return on
}

// sick returns a change that makes a device with the slot unhealthy without removing it.
func (s *stand) sick() (name string, id string) {
	mine := func(id string) bool { return s.ids == nil || slices.Contains(s.ids(s.m), id) }
	for change, c := range s.m.Changes {
		for device, health := range c.Expect.Health {
			if health == "UNHEALTHY" && mine(device) && (name == "" || change+device < name+id) {
				name, id = change, device
			}
		}
	}
	return name, id
}
