package app

import (
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity/identitytest"
)

// harbour has sessions, and assigns the ports of a range to apps.
type harbour struct {
	*identitytest.World
	*Service
	t     *testing.T
	ports *Ports
	group *ent.ResourceGroup
	image *ent.Image
}

func newHarbour(t *testing.T, first, last int) *harbour {
	t.Helper()
	h := &harbour{World: identitytest.New(t), t: t, ports: &Ports{URL: "https://apps.example.org", First: first, Last: last, Page: "https://berth.example.org"}}
	var err error
	h.Service, err = New(Config{Client: h.World.Client, Gateways: func() []Gateway {
		return []Gateway{{Paths: "https://paths.example.org"}, {Ports: h.ports}}
	}})
	if err != nil {
		t.Fatal(err)
	}
	sys := viewer.SystemContext(t.Context())
	h.group = h.World.Client.ResourceGroup.Create().SetName("default").SaveX(sys)
	reg := h.World.Client.Registry.Create().SetName("test").SetHost("registry.test").SaveX(sys)
	h.image = h.World.Client.Image.Create().SetReference("registry.test/i:1").SetName("i:1").SetArchitecture("amd64").SetDigest("-").SetRegistry(reg).SaveX(sys)
	return h
}

// session creates a running session of a user.
func (h *harbour) session(name string, owner *ent.User) *ent.Session {
	return h.World.Client.Session.Create().SetName(name).SetType("interactive").SetStatus(lifecycle.Running).SetStartedAt(time.Now()).
		SetSlots(resource.Slots{"cpu": 1000}).SetDomain(h.A.Domain).SetProject(h.A.Project).SetOwner(owner).
		SetResourceGroup(h.group).SetImage(h.image).SaveX(viewer.SystemContext(h.t.Context()))
}

// end ends a session at a time.
func (h *harbour) end(s *ent.Session, at time.Time) {
	h.World.Client.Session.UpdateOne(s).SetStatus(lifecycle.Terminated).SetTerminatedAt(at).ExecX(viewer.SystemContext(h.t.Context()))
}

func (h *harbour) open(s *ent.Session, app string) (int, error) {
	return h.assign(h.t.Context(), h.ports, &Place{Target: Target{Session: s.ID, App: app}, Session: s})
}

func (h *harbour) mustOpen(s *ent.Session, app string) int {
	h.t.Helper()
	port, err := h.open(s, app)
	if err != nil {
		h.t.Fatalf("%s of %s: %v", app, s.Name, err)
	}
	return port
}

// An app keeps its port, and no other app gets it. Concurrent requests for one app get the same
// port.
func TestPortsOfApps(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, 20000, 20099)
	one, two := h.session("one", h.A.Member), h.session("two", h.A.Lead)
	got := map[string]map[int]bool{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 4 {
		for _, app := range []string{"jupyter", "desk", "8000"} {
			for _, s := range []*ent.Session{one, two} {
				all.Go(func() {
					port, err := h.open(s, app)
					if err != nil {
						t.Errorf("%s of %s: %v", app, s.Name, err)
						return
					}
					mu.Lock()
					defer mu.Unlock()
					if got[s.Name+app] == nil {
						got[s.Name+app] = map[int]bool{}
					}
					got[s.Name+app][port] = true
				})
			}
		}
	}
	all.Wait()
	seen := map[int]string{}
	for app, ports := range got {
		if len(ports) != 1 {
			t.Errorf("%s has the ports %v", app, ports)
		}
		for port := range ports {
			if other := seen[port]; other != "" || !h.ports.Has(port) {
				t.Errorf("%s and %q have port %d", app, other, port)
			}
			seen[port] = app
		}
	}
	if len(seen) != 6 {
		t.Errorf("%d ports of 6 apps", len(seen))
	}
	port := h.mustOpen(one, "jupyter")
	at, ok, err := h.At(t.Context(), port)
	if want := (Target{Session: one.ID, App: "jupyter"}); err != nil || !ok || at != want {
		t.Errorf("port %d is of %+v, %v, %v", port, at, ok, err)
	}
	if _, ok, err := h.At(t.Context(), 20099); ok || err != nil {
		t.Errorf("a port that no app has: %v, %v", ok, err)
	}
	if n, err := h.PortsInUse(t.Context(), h.ports); n != 6 || err != nil {
		t.Errorf("%d ports in use, %v", n, err)
	}
}

// The ports of a session are free when it has ended, and the one that has been free for the longest
// time is assigned first. No running session loses its port.
func TestPortsAreFreeAfterTheSession(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, 20000, 20002)
	owners := []*ent.User{h.A.Member, h.A.Lead, h.A.Admin, h.A.Loner, h.Superadmin}
	var sessions []*ent.Session
	for i, u := range owners {
		sessions = append(sessions, h.session(string(rune('a'+i)), u))
	}
	first, second, third := h.mustOpen(sessions[0], "desk"), h.mustOpen(sessions[1], "desk"), h.mustOpen(sessions[2], "desk")
	_, err := h.open(sessions[3], "desk")
	if p, _ := problem.From(err); p.Code != problem.CodeResourceExhausted || p.Field != "app" || p.Limit != "3" {
		t.Errorf("without a free port: %+v, %v", p, err)
	}
	h.end(sessions[1], time.Now().Add(-time.Hour))
	h.end(sessions[0], time.Now())
	if got := h.mustOpen(sessions[3], "desk"); got != second {
		t.Errorf("the port of the session that ended last: %d, want %d", got, second)
	}
	if got := h.mustOpen(sessions[4], "desk"); got != first {
		t.Errorf("the next one: %d, want %d", got, first)
	}
	if got := h.mustOpen(sessions[2], "desk"); got != third {
		t.Errorf("the app of a running session got port %d, and had %d", got, third)
	}
	h.ports = &Ports{URL: h.ports.URL, First: 30000, Last: 30010}
	if got := h.mustOpen(sessions[2], "desk"); got != 30000 {
		t.Errorf("after the range has changed: %d", got)
	}
	if _, ok, err := h.At(t.Context(), third); ok || err != nil {
		t.Errorf("the app still has its old port: %v", err)
	}
}

// One owner cannot use all ports.
func TestPortsOfOneOwner(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, 20000, 20007)
	s := h.session("greedy", h.A.Member)
	h.mustOpen(s, "8000")
	h.mustOpen(s, "8001")
	_, err := h.open(s, "8002")
	if p, _ := problem.From(err); p.Code != problem.CodeResourceExhausted || p.Field != "app" || p.Limit != "2" {
		t.Errorf("more than a quarter: %+v, %v", p, err)
	}
	h.mustOpen(s, "8001")
	h.mustOpen(h.session("other", h.A.Lead), "8002")
}

// Without a port, the address of an app is at the page, which assigns a port.
func TestAddressesOnPorts(t *testing.T) {
	h := &Service{}
	ports := &Ports{URL: "https://apps.example.org", First: 20000, Last: 20001, Page: "https://berth.example.org"}
	gateways := []Gateway{{Paths: "https://paths.example.org"}, {Ports: ports}}
	h.Gateways = func() []Gateway { return gateways }
	target := Target{Session: id.New(id.Session), App: "desk"}
	if got := h.Address(target, 20001); got != "https://apps.example.org:20001/" || h.Prefix(target) != "/" {
		t.Errorf("%s, prefix %s", got, h.Prefix(target))
	}
	for _, port := range []int{0, 20002} {
		u, err := url.Parse(h.Address(target, port))
		if err != nil || u.Host != "berth.example.org" || u.Path != AskPath || u.Query().Get("app") != target.Label() {
			t.Errorf("port %d: %s, %v", port, u, err)
		}
	}
	for origin, want := range map[string]bool{
		"https://apps.example.org:20000": true, "https://APPS.example.org:20001": true, "https://apps.example.org:20002": false,
		"https://apps.example.org": false, "https://berth.example.org:20000": false,
	} {
		if h.IsAppOrigin(origin) != want {
			t.Errorf("%s: not %v", origin, want)
		}
	}
	gateways = append(gateways, Gateway{Apps: "https://*.apps.example.org"})
	if got := h.Address(target, 20001); got != "https://"+target.Label()+".apps.example.org/" {
		t.Errorf("with sub-domains: %s", got)
	}
}
