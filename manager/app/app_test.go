package app

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/appstate"
	"github.com/berthhq/berth/internal/id"
)

func newService(t *testing.T) *Service {
	t.Helper()
	s, err := New(Config{Gateways: func() []Gateway {
		return []Gateway{{Apps: "https://*.apps.example.org:8443", Paths: "https://paths.example.org"}}
	}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCatalogueFillsInWhereAnAppListens(t *testing.T) {
	s := newService(t)
	e := s.known("jupyter")
	if e == nil {
		t.Fatal("the catalogue has no jupyter")
	}
	spec := e.definition().spec("/apps/x/")
	if !slices.Contains(spec.Command, "--port=8888") || !slices.Contains(spec.Command, "--NotebookApp.base_url=/apps/x/") ||
		spec.Environment["APP_BASE_PATH"] != "/apps/x/" || spec.Environment["BERTH_APP_PORT"] != "8888" {
		t.Errorf("%+v", spec)
	}
	ports := map[int]string{}
	for _, e := range s.catalogue {
		if other := ports[e.Port]; other != "" {
			t.Errorf("%s and %s share port %d", e.Name, other, e.Port)
		}
		ports[e.Port] = e.Name
		for _, arg := range e.definition().spec("/").Command {
			if strings.Contains(arg, "{port}") || strings.Contains(arg, "{prefix}") || strings.Contains(arg, "{path}") {
				t.Errorf("%s: %q keeps a placeholder", e.Name, arg)
			}
		}
	}
}

// Invalid entries of labels are skipped.
func TestAppsOfLabels(t *testing.T) {
	s := newService(t)
	got := s.labelled(map[string]string{
		labelBAI:  "jupyter:http:8081, ipython:pty:3000,sshd:preopen:2200,bad name:http:1,tensorboard:http:99999,x",
		labelApps: `[{"name":"docs","port":8000,"command":["serve"]},{"name":"../x","port":1}]`,
	})
	var names []string
	for _, d := range got {
		names = append(names, d.Name)
	}
	if strings.Join(names, " ") != "docs jupyter sshd" {
		t.Errorf("%v", names)
	}
	if got[1].Port != 8081 || !got[1].Startable() {
		t.Errorf("jupyter of the label: %+v", got[1])
	}
	if len(s.labelled(map[string]string{labelApps: "{"})) != 0 {
		t.Error("a label that is not JSON has apps")
	}
}

// Ten thousand apps of a label or ports of a container are shortened to a list that a page can
// show.
func TestTenThousandApps(t *testing.T) {
	s := newService(t)
	var own []appstate.App
	survey := &appstate.Survey{Ports: []appstate.Port{{Port: 0}, {Port: -1}, {Port: 70000}}}
	for i := range 10_000 {
		own = append(own, appstate.App{Name: fmt.Sprintf("app%d", i), Port: 1 + i})
		survey.Ports = append(survey.Ports, appstate.Port{Port: 20_000 + i})
	}
	label, err := json.Marshal(own)
	if err != nil {
		t.Fatal(err)
	}
	list := s.definitions(&ent.Session{}, map[string]string{labelApps: string(label)}, survey)
	if len(list) != maxLabelled+maxFound || list[0].Name != "app0" || list[maxLabelled].Port != 20_000 {
		t.Errorf("%d apps, the first %+v", len(list), list[0])
	}
}

// The path of a ticket cannot lead to another host or add a header.
func TestPathsThatLeaveTheApp(t *testing.T) {
	for path, ok := range map[string]bool{
		"/": true, "/tree/a b?x=1": true, "/lab#top": true, "": false, "tree": false, "//evil.example": false,
		"/\\evil.example": false, "https://evil.example/": false, "/a\r\nSet-Cookie: x": false, "/" + strings.Repeat("a", maxPath): false,
	} {
		if err := checkPath(path); (err == nil) != ok {
			t.Errorf("%.30q: %v", path, err)
		}
	}
}

func TestNetworksOfAShare(t *testing.T) {
	list, err := parseNetworks([]string{"10.1.2.3/16", "192.0.2.7", "2001:db8::/32"})
	if err != nil || strings.Join(list, " ") != "10.1.0.0/16 192.0.2.7/32 2001:db8::/32" {
		t.Fatalf("%v, %v", list, err)
	}
	for address, want := range map[string]bool{"10.1.9.9": true, "::ffff:10.1.9.9": true, "10.2.0.1": false, "192.0.2.8": false, "2001:db8::1": true} {
		if inside(list, netip.MustParseAddr(address)) != want {
			t.Errorf("%s: not %v", address, want)
		}
	}
	if inside(list, netip.Addr{}) || !inside(nil, netip.Addr{}) {
		t.Error("an unknown address is in a network, or not in all")
	}
	if _, err := parseNetworks([]string{"example.org"}); err == nil {
		t.Error("a name is accepted as a network")
	}
}

func TestOriginsOfApps(t *testing.T) {
	s := newService(t)
	target := Target{Session: id.New(id.Session), App: "jupyter"}
	for origin, want := range map[string]bool{
		"https://" + target.Label() + ".apps.example.org:8443": true, "https://x.APPS.example.org": true, "https://paths.example.org": true,
		"https://berth.example.org": false, "https://evilapps.example.org": false, "https://apps.example.org.evil": false, "null": false, "": false,
	} {
		if s.IsAppOrigin(origin) != want {
			t.Errorf("%s: not %v", origin, want)
		}
	}
	if got := s.Address(target, 0); got != "https://"+target.Label()+".apps.example.org:8443/" {
		t.Errorf("%s", got)
	}
}

func TestStatusOfAnApp(t *testing.T) {
	d := Definition{App: appstate.App{Name: "desk", Port: 80}}
	state := func(change func(*appstate.State)) *appstate.Survey {
		st := appstate.State{Name: "desk"}
		st.Started = st.Started.AddDate(2000, 0, 0)
		change(&st)
		return &appstate.Survey{Apps: []appstate.State{st}}
	}
	for name, c := range map[string]struct {
		survey *appstate.Survey
		want   AppStatus
	}{
		"never started": {&appstate.Survey{}, StatusStopped},
		"listens":       {&appstate.Survey{Ports: []appstate.Port{{Port: 80}}}, StatusRunning},
		"starts":        {state(func(st *appstate.State) { st.Running = true }), StatusStarting},
		"was stopped":   {state(func(st *appstate.State) { st.Exit = 143 }), StatusStopped},
		"has failed":    {state(func(st *appstate.State) { st.Exit = 1 }), StatusFailed},
	} {
		if got, _ := statusOf(d, c.survey); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// A folder is opened in the app if the catalogue has a path for it, and ignored otherwise.
func TestPathsThatShowAFolder(t *testing.T) {
	s := newService(t)
	text := func(s string) *string { return &s }
	for name, c := range map[string]struct{ app, folder, want string }{
		"below home":        {"jupyterlab", "/home/work/my data", "/lab/tree/my%20data"},
		"home":              {"jupyterlab", "/home/work/", "/lab/tree/"},
		"outside of home":   {"jupyterlab", "/data", "/"},
		"beside home":       {"jupyterlab", "/home/worker", "/"},
		"up":                {"jupyterlab", "/home/work/../../etc", "/"},
		"in a query":        {"code-server", "/data/a&b", "/?folder=%2Fdata%2Fa%26b"},
		"cannot show it":    {"tensorboard", "/home/work/logs", "/"},
		"not in the list":   {"docs", "/home/work", "/"},
		"port of a program": {"8000", "/home/work", "/"},
	} {
		got, err := s.pathOf(Target{App: c.app}, OpenAppInput{Folder: text(c.folder)})
		if err != nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
		if err := checkPath(got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.pathOf(Target{App: "jupyterlab"}, OpenAppInput{Folder: text("data")}); err == nil {
		t.Error("a relative folder is accepted")
	}
	if _, err := s.pathOf(Target{App: "jupyterlab"}, OpenAppInput{Folder: text("/a"), Path: text("/b")}); err == nil {
		t.Error("a folder and a path are accepted together")
	}
}

func TestAppsOfAnImage(t *testing.T) {
	s := newService(t)
	got := s.OfImage(map[string]string{labelApps: `[{"name":"jupyterlab","port":8889},{"name":"mine","port":8000}]`})
	if len(got) != 1 || got[0].Name != "jupyterlab" || got[0].Title != "JupyterLab" {
		t.Errorf("%+v", got)
	}
}
