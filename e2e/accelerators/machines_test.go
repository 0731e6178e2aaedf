package accelerators

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berthhq/berth/e2e/cluster"
	"github.com/berthhq/berth/internal/fixture"
)

// rounds distributes the built-in machines to platforms, such that a platform runs each plugin
// once.
func rounds(t *testing.T) (all [][]*stand) {
	seen := map[string]int{}
	for _, name := range fixture.Names() {
		s := load(t, name)
		if s == nil {
			continue
		}
		n := seen[s.m.Plugin]
		seen[s.m.Plugin]++
		if n == len(all) {
			all = append(all, nil)
		}
		all[n] = append(all[n], s)
	}
	return all
}

// Every machine shows its devices. A session gets what it needs for one device, sees only that
// device, and loses nothing when all plugins are killed. Then devices become unhealthy and
// disappear, and the sessions that use them are notified.
func TestMachines(t *testing.T) {
	for _, stands := range rounds(t) {
		var names []string
		for _, s := range stands {
			names = append(names, s.m.Name)
		}
		t.Run(strings.Join(names, "+"), func(t *testing.T) {
			r := &round{Platform: cluster.Start(t, cluster.Options{Machines: names}), stands: stands}
			r.u = r.UserAs(t, "SUPERADMIN")
			r.start(t)
			r.kill(t)
			r.next(t)
			r.spoil(t)
		})
	}
}

type round struct {
	*cluster.Platform
	u      *cluster.User
	stands []*stand
}

// each runs a step for every machine. Slow operations are requested for all machines before.
func (r *round) each(t *testing.T, step string, do func(t *testing.T, u *cluster.User, s *stand)) {
	t.Helper()
	for _, s := range r.stands {
		t.Run(s.m.Name+"/"+step, func(t *testing.T) { do(t, r.u.In(t), s) })
	}
	if t.Failed() {
		t.FailNow() // the next steps would report the same
	}
}

// start runs a session on a device of each machine.
func (r *round) start(t *testing.T) {
	r.each(t, "devices", func(t *testing.T, u *cluster.User, s *stand) {
		if err := s.complete(u); err != nil {
			t.Error(err)
		}
		s.first = u.Run(s.asks("1")).ID
	})
	r.each(t, "inside", func(t *testing.T, u *cluster.User, s *stand) { s.on = s.look(t, u, s.first) })
}

// kill sends SIGKILL to all plugins while the sessions run. Nothing is lost.
func (r *round) kill(t *testing.T) {
	var plugins []string
	for _, s := range r.stands {
		plugins = append(plugins, "accelerator/"+s.m.Plugin)
	}
	begun := time.Now()
	r.KillPlugins(t, plugins...)
	r.each(t, "killed", func(t *testing.T, u *cluster.User, s *stand) {
		complete(t, u, s)
		if now := s.look(t, u, s.first); now != s.on {
			t.Errorf("the session holds %s, before %s", now, s.on)
		}
	})
	t.Logf("all is as before %.1f s after kill -9 of %d plugins", time.Since(begun).Seconds(), len(plugins))
	r.consistent(t)
}

// consistent compares the containers of the agent with the database.
func (r *round) consistent(t *testing.T) {
	t.Helper()
	if out := r.u.In(t).Shell().Run("admin", "occupancy"); out.Code != 0 {
		t.Errorf("berth admin occupancy: %d\n%s%s", out.Code, out.Stdout, out.Stderr)
	}
}

// next starts a session on another device, ends the first session, and creates a session that waits
// for all devices.
func (r *round) next(t *testing.T) {
	r.each(t, "second", func(_ *testing.T, u *cluster.User, s *stand) {
		if s.total() != "1" {
			s.second = u.Run(s.asks("1")).ID
		}
	})
	r.each(t, "another", func(t *testing.T, u *cluster.User, s *stand) {
		if s.second != "" {
			if on := s.look(t, u, s.second); on == s.on {
				t.Errorf("both sessions hold %s", on)
			}
		}
		s.all = u.Run(s.asks(s.total())).ID
	})
	r.each(t, "end", func(t *testing.T, u *cluster.User, s *stand) {
		if s.second == "" {
			return // the first session must still run when the device becomes unhealthy
		}
		u.End(s.first)
		cluster.Eventually(t, "the device is free", func() bool { return s.devices(u)[s.on].Occupied[s.slot] == 0 })
	})
	r.consistent(t)
}

// spoil makes devices unhealthy, and then removes them.
func (r *round) spoil(t *testing.T) {
	begun := time.Now()
	for _, s := range r.stands {
		name, _ := s.sick()
		if _, ok := s.m.Changes["unplug"]; name == "" || !ok {
			t.Fatalf("the machine %s has no change that makes a device with %s UNHEALTHY, or none that unplugs one", s.m.Name, s.slot)
		}
		r.Change(t, s.m.Name, name)
	}
	r.each(t, "sick", func(t *testing.T, u *cluster.User, s *stand) {
		name, _ := s.sick()
		s.becomes(t, u, name)
	})
	t.Logf("changes are seen after %.1f s", time.Since(begun).Seconds())
	r.each(t, "waits", func(t *testing.T, u *cluster.User, s *stand) {
		for _, id := range []string{s.first, s.second} {
			if id != "" && !ended(u, id) {
				u.End(id)
			}
		}
		s.waits(t, u)
		u.End(s.all)
	})
	begun = time.Now()
	for _, s := range r.stands {
		r.Change(t, s.m.Name, "unplug")
	}
	r.each(t, "unplug", func(t *testing.T, u *cluster.User, s *stand) { s.becomes(t, u, "unplug") })
	t.Logf("unplugged devices disappeared after %.1f s", time.Since(begun).Seconds())
	r.consistent(t)
}

func ended(u *cluster.User, id string) bool {
	s := u.Show(id)
	return s.Ended()
}

// becomes waits until the devices match the machine's file after a change.
func (s *stand) becomes(t *testing.T, u *cluster.User, change string) {
	t.Helper()
	want := s.m.Changes[change].Expect
	wrong := ""
	waitFor(t, &wrong, func() bool {
		wrong = ""
		now := s.devices(u)
		for _, id := range slices.Sorted(maps.Keys(want.Health)) {
			if d := now[id]; !strings.EqualFold(d.Health, want.Health[id]) || d.Allocatable == (want.Health[id] == "UNHEALTHY") {
				wrong = id + " is " + d.Health
			} else if !d.Allocatable && len(d.RejectReasons) == 0 {
				wrong = id + " cannot be allocated, and no reason is shown"
			}
		}
		for _, id := range want.Gone {
			if d, there := now[id]; there && (d.Health != "LOST" || d.Allocatable) {
				wrong = id + " is still there, and " + d.Health
			}
		}
		return wrong == ""
	})
}

// waits checks that the session that needs all devices waits because of this slot, and that another
// such session gets the reason at once.
func (s *stand) waits(t *testing.T, u *cluster.User) {
	t.Helper()
	why := ""
	waitFor(t, &why, func() bool {
		now := u.Show(s.all)
		if now.Status != "PENDING" {
			t.Fatalf("the session that needs all devices is %s", now.Status)
		}
		if now.Pending == nil {
			return false // the scheduler has not considered it again yet
		}
		why = now.Pending.Summary
		n := now.Pending.Nearest
		return strings.Contains(why, s.slot) && (n == nil || n.Slot == s.slot && n.Requested == s.total() && n.Free != n.Requested)
	})
	if _, err := u.CreateSession(t.Context(), s.asks(s.total())); err == nil || !strings.Contains(err.Error(), s.slot) {
		t.Errorf("a further one that needs all devices: %v, want a refusal that names %s", err, s.slot)
	}
	t.Logf("%s", why)
}

func complete(t *testing.T, u *cluster.User, s *stand) {
	t.Helper()
	wrong := ""
	waitFor(t, &wrong, func() bool {
		err := s.complete(u)
		if err != nil {
			wrong = err.Error()
		}
		return err == nil
	})
}

// waitFor is Eventually with the last error in its failure.
func waitFor(t *testing.T, wrong *string, is func() bool) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() && *wrong != "" {
			t.Log("last: " + *wrong)
		}
	})
	cluster.Eventually(t, "the devices are as expected", is)
}
