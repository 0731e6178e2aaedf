package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/appstate"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/portstream"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/app"
	"github.com/berthhq/berth/manager/audit"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/identity/identitytest"
)

// portMode is a mode with the ports 20000 to 20009 of ports.test.
func portMode() mode {
	return mode{host: "ports.test", ports: &app.Ports{URL: "http://ports.test", First: 20000, Last: 20009, Page: "http://berth.test"}}
}

// Only ports of the range at the configured host belong to apps.
func TestHostsOfPortMode(t *testing.T) {
	g := testGateway()
	g.modes = append(g.modes, portMode())
	for host, port := range map[string]int{
		"ports.test:20000": 20000, "PORTS.test:20009": 20009, "ports.test:20010": 0, "ports.test": 0, "ports.test:": 0, "ports.test:020000": 0,
		"ports.test:+20000": 0, "evil.test:20000": 0, "127.0.0.1:20000": 0, "ports.test.evil.example:20000": 0, "x.ports.test:20000": 0, "ports.test.:20000": 0,
	} {
		r := httptest.NewRequest("GET", "/lab", nil)
		r.Host = host
		r.Header.Set("X-Forwarded-Host", "ports.test:20001")
		r.Header.Set("X-Forwarded-Port", "20001")
		at, _, ok := g.locate(r)
		if ok != (port > 0) || at.port != port || ok && (at.prefix != "/" || at.path != "/lab") {
			t.Errorf("%s: %v, %+v", host, ok, at)
		}
	}
}

// Browsers send the cookies of all ports of a host to each of them. No cookie of the gateway
// reaches an app, whatever port it is for, and the cookie of one port opens no app on another port,
// even under the name for that port.
func TestCookiesOfOtherPorts(t *testing.T) {
	keys, err := seal.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := testGateway()
	g.Keys = keys
	of := func(port int, secure bool) location {
		m := portMode()
		m.secure = secure
		return location{mode: m, port: port, target: app.Target{Session: id.New(id.Session), App: "desk"}, prefix: "/", path: "/"}
	}
	for _, secure := range []bool{false, true} {
		a, b := of(20000, secure), of(20001, secure)
		if a.cookieName() == b.cookieName() || !ours(a.cookieName()) || secure != strings.HasPrefix(a.cookieName(), "__Host-Http-") {
			t.Fatalf("cookies %s and %s", a.cookieName(), b.cookieName())
		}
		value, err := g.seal(claims{Target: a.target, User: uuid.New(), Expires: time.Now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		c := a.cookie(value, cookieLife)
		if c.Path != "/" || !c.HttpOnly || c.Secure != secure || c.Domain != "" {
			t.Errorf("cookie %+v", c)
		}
		for name, try := range map[string]struct {
			at     location
			cookie string
			ok     bool
		}{
			"its own port": {a, a.cookieName(), true}, "another port": {b, a.cookieName(), false},
			"another port under its name": {b, b.cookieName(), false}, "the name of other modes": {a, cookiePlain, false},
		} {
			r := httptest.NewRequest("GET", "/", nil)
			r.AddCookie(&http.Cookie{Name: try.cookie, Value: value})
			if _, _, err := g.cookieOf(r, try.at); (err == nil) != try.ok {
				t.Errorf("%s, secure %v: %v", name, secure, err)
			}
		}
	}
	got := make(chan *http.Request, 1)
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		got <- r
		rw.Header().Add("Set-Cookie", "berth-app-20001=forged; Path=/")
		rw.Header().Add("Set-Cookie", "__Host-Http-berth-app-20001=forged; Path=/; Secure; HttpOnly")
		rw.Header().Add("Set-Cookie", "theirs=1; Path=/lab")
	}))
	w.onPort(20000)
	resp := w.request(t, http.MethodGet, "/", nil, http.Header{"Cookie": {
		"berth-app-20000=secret; berth-app-20001=secret; __Host-Http-berth-app-20002=secret; __Host-berth-app=secret; berth=secret; theirs=1"}})
	if c := (<-got).Header.Values("Cookie"); strings.Join(c, "; ") != "theirs=1" {
		t.Errorf("cookies of the app: %q", c)
	}
	if c := resp.Header.Values("Set-Cookie"); len(c) != 1 || c[0] != "theirs=1; Path=/lab" {
		t.Errorf("cookies of the browser: %q", c)
	}
}

// onPort assigns a port to the app of a world.
func (w *world) onPort(port int) {
	w.g.modes = []mode{portMode()}
	w.host = "ports.test:" + strconv.Itoa(port)
}

// A browser that enters the next app of a port deletes what the previous app has stored, and a
// browser that returns does not. Without TLS, the browser would ignore the header, so it must not
// cache answers.
func TestNextAppOfAPort(t *testing.T) {
	keys, err := seal.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := testGateway()
	g.Keys = keys
	at := location{mode: portMode(), port: 20000, target: app.Target{Session: id.New(id.Session), App: "desk"}, prefix: "/", path: "/"}
	cookie := func(target app.Target, until time.Duration) string {
		v, err := g.seal(claims{Target: target, Expires: time.Now().Add(until)})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	before := app.Target{Session: id.New(id.Session), App: "desk"}
	for name, c := range map[string]struct {
		value string
		clear bool
	}{
		"never there": {"", true}, "in the app before": {cookie(before, time.Hour), true}, "forged": {"x", true},
		"in the app": {cookie(at.target, time.Hour), false}, "in the app, days ago": {cookie(at.target, -48*time.Hour), false},
	} {
		r, rec := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
		if c.value != "" {
			r.AddCookie(&http.Cookie{Name: at.cookieName(), Value: c.value})
		}
		g.greet(rec, r, at)
		if got := rec.Header().Get("Clear-Site-Data"); (got == `"cache", "storage"`) != c.clear || !c.clear && got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}))
	if c := w.request(t, http.MethodGet, "/app.js", nil, nil).Header.Get("Cache-Control"); c != "public, max-age=31536000, immutable" {
		t.Errorf("on a host of its own: %q", c)
	}
	w.onPort(20000)
	if c := w.request(t, http.MethodGet, "/app.js", nil, nil).Header.Get("Cache-Control"); c != "no-store" {
		t.Errorf("on a port: %q", c)
	}
}

// An app keeps its port while the database cannot be reached. Look-ups without an answer are
// repeated.
func TestAppOfAPort(t *testing.T) {
	g := testGateway()
	g.log = slog.New(slog.DiscardHandler)
	target := app.Target{Session: id.New(id.Session), App: "desk"}
	asked, down := 0, false
	g.appAt = func(_ context.Context, port int) (app.Target, bool, error) {
		asked++
		if down {
			return app.Target{}, false, errors.New("down")
		}
		return target, port == 20000, nil
	}
	find := func(port int, path string) (app.Target, error) {
		at := location{port: port, path: path}
		err := g.find(t.Context(), &at)
		return at.target, err
	}
	for range 3 {
		if got, err := find(20000, "/"); err != nil || got != target {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if asked != 1 {
		t.Errorf("the database was asked %d times", asked)
	}
	if _, err := find(20001, "/"); err == nil {
		t.Error("a port without an app has one")
	}
	next := app.Target{Session: id.New(id.Session), App: "lab"}
	target = next
	if got, err := find(20000, app.EnterPath); err != nil || got != next {
		t.Errorf("a ticket for the next app of the port finds %+v, %v", got, err)
	}
	down = true
	if got, err := find(20000, app.EnterPath); err != nil || got != next {
		t.Errorf("without the database: %+v, %v", got, err)
	}
	if _, err := find(20002, "/"); err == nil {
		t.Error("without the database, an unknown port has an app")
	}
}

func TestServiceWorkersInPortMode(t *testing.T) {
	g := testGateway()
	g.modes = []mode{portMode()}
	r := httptest.NewRequest("GET", "http://ports.test:20000/sw.js", nil)
	r.Header.Set("Service-Worker", "script")
	at, _, ok := g.locate(r)
	if !ok || at.trespass(r) == "" {
		t.Error("a service worker would outlive its app on the port")
	}
	r = httptest.NewRequest("POST", "http://ports.test:20000/api", nil)
	r.Header.Set("Origin", "http://ports.test:20001")
	if at, _, _ := g.locate(r); at.trespass(r) == "" {
		t.Error("the page of another port sends a request")
	}
}

// quay is a gateway in port mode with a database and Redis, for the apps of one session.
type quay struct {
	*identitytest.World
	t       *testing.T
	g       *Gateway
	url     string
	session *ent.Session
	viewer  *viewer.Viewer
	token   string
}

// agents is the only agent.
type agents struct {
	rpc   agentpb.AgentClient
	ports portstream.Opener
}

func (a agents) RPC(string) (agentpb.AgentClient, error) { return a.rpc, nil }

func (a agents) Streams(string) (portstream.Opener, error) { return a.ports, nil }

func newQuay(t *testing.T, apps ...appstate.App) *quay {
	t.Helper()
	q := &quay{World: identitytest.New(t), t: t}
	keys, err := seal.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	opt, err := redis.ParseURL(testenv.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	store := redis.NewClient(opt)
	t.Cleanup(func() { store.Close() })
	q.g = assemble(t.Context(), nil, 0).g
	q.g.modes = []mode{portMode()}
	log, bus := slog.New(slog.DiscardHandler), event.New(nil, nil)
	q.g.Parts = Parts{
		Client: q.Client, Bus: bus, Keys: keys, Agents: agents{reachRunner(t), node{t.Context()}}, Logger: log,
		Auth:  auth.New(auth.Config{Client: q.Client, Bus: bus, Passwords: identitytest.Hasher(), Logger: log}),
		Audit: audit.New(audit.Config{Client: q.Client, Logger: log}),
	}
	q.g.Apps, err = app.New(app.Config{Client: q.Client, Bus: bus, Redis: store, Keys: keys, Agents: q.g.Agents, Logger: log,
		Gateways: func() []app.Gateway { return []app.Gateway{{Ports: portMode().ports}} }})
	if err != nil {
		t.Fatal(err)
	}
	q.g.appAt, q.g.cfg.PageURL = q.g.Apps.At, "http://berth.test"
	q.enter(apps)
	srv := httptest.NewUnstartedServer(q.g)
	srv.Config.Protocols = cleartext()
	srv.Start()
	t.Cleanup(func() {
		srv.Close()
		q.g.entries.mu.Lock()
		for _, e := range q.g.entries.m {
			e.end()
		}
		q.g.entries.mu.Unlock()
		q.g.serves.Wait()
	})
	q.url = srv.URL
	return q
}

// enter creates a running session with apps, and a login of its owner.
func (q *quay) enter(apps []appstate.App) {
	ctx := viewer.SystemContext(q.t.Context())
	group := q.Client.ResourceGroup.Create().SetName("default").SaveX(ctx)
	reg := q.Client.Registry.Create().SetName("test").SetHost("registry.test").SaveX(ctx)
	image := q.Client.Image.Create().SetReference("registry.test/i:1").SetName("i:1").SetArchitecture("amd64").SetDigest("-").SetRegistry(reg).SaveX(ctx)
	node := q.Client.Agent.Create().SetName("machine").SetResourceGroup(group).SaveX(ctx)
	slots := resource.Slots{"cpu": 1000}
	q.session = q.Client.Session.Create().SetName("lab").SetType("interactive").SetStatus(lifecycle.Running).SetStartedAt(time.Now()).SetSlots(slots).
		SetDomain(q.A.Domain).SetProject(q.A.Project).SetOwner(q.A.Member).SetResourceGroup(group).SetImage(image).SetApps(apps).SaveX(ctx)
	q.Client.Kernel.Create().SetSession(q.session).SetSlots(slots).SetStatus(lifecycle.Running).SetAgent(node).SetHostname("main").
		SetDomainID(q.session.DomainID).SetProjectID(q.session.ProjectID).SetOwnerID(q.session.OwnerID).ExecX(ctx)
	made, err := q.g.Auth.CreateAccessToken(q.As(q.t, q.A.Member), auth.CreateAccessTokenInput{Name: "t", Scopes: []access.TokenScope{access.TokenSessions}})
	if err != nil {
		q.t.Fatal(err)
	}
	q.token = *made.Secret
	if q.viewer, err = q.g.Auth.Bearer(q.t.Context(), "Bearer "+q.token); err != nil {
		q.t.Fatal(err)
	}
}

// open opens an app of the session, and returns the host of its port and the path with the ticket.
func (q *quay) open(name string) (host, path string) {
	q.t.Helper()
	got, err := q.g.Apps.OpenApp(viewer.With(q.t.Context(), q.viewer), app.OpenAppInput{Session: q.session.ID, App: &name})
	if err != nil {
		q.t.Fatal(err)
	}
	u, err := url.Parse(got.URL)
	if err != nil {
		q.t.Fatal(err)
	}
	if got.Address != "http://"+u.Host+"/" {
		q.t.Errorf("address %s of %s", got.Address, got.URL)
	}
	return u.Host, u.RequestURI()
}

func (q *quay) get(host, path string, header http.Header) (*http.Response, string) {
	q.t.Helper()
	w := &world{url: q.url, host: host}
	resp := w.request(q.t, http.MethodGet, path, nil, header)
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		q.t.Fatal(err)
	}
	return resp, string(body)
}

// Two apps of a session are on two ports of one host. A ticket opens its own app once. The browser
// sends the cookies of both ports to each, and each app uses only the cookie of its port.
func TestAppsOnPorts(t *testing.T) {
	var apps []appstate.App
	seen := map[string]chan *http.Request{}
	for _, name := range []string{"desk", "docs"} {
		seen[name] = make(chan *http.Request, 8)
		program := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			seen[name] <- r
			fmt.Fprint(rw, name)
		}))
		t.Cleanup(program.Close)
		port, err := strconv.Atoi(program.URL[strings.LastIndexByte(program.URL, ':')+1:])
		if err != nil {
			t.Fatal(err)
		}
		apps = append(apps, appstate.App{Name: name, Port: port, Command: []string{"serve"}})
	}
	q := newQuay(t, apps...)
	desk, ticket := q.open("desk")
	docs, docsTicket := q.open("docs")
	if desk == docs {
		t.Fatalf("both apps are at %s", desk)
	}
	spare, _ := q.open("desk")
	if spare != desk {
		t.Errorf("the app moved from %s to %s", desk, spare)
	}
	if resp, _ := q.get(docs, ticket, nil); resp.StatusCode != http.StatusUnauthorized || len(resp.Cookies()) > 0 {
		t.Errorf("a ticket on the port of another app: %s", resp.Status)
	}
	_, ticket = q.open("desk")
	var jar []string
	cookieOf := map[string]string{}
	for host, path := range map[string]string{desk: ticket, docs: docsTicket} {
		resp, _ := q.get(host, path, nil)
		if c := resp.Cookies(); resp.StatusCode != http.StatusSeeOther || len(c) != 1 || !c[0].HttpOnly || resp.Header.Get("Clear-Site-Data") == "" {
			t.Fatalf("enter %s: %s, %v", host, resp.Status, resp.Header)
		}
		cookieOf[host] = resp.Cookies()[0].Name + "=" + resp.Cookies()[0].Value
		jar = append(jar, cookieOf[host])
		if resp, _ := q.get(host, path, nil); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("a ticket that was used: %s", resp.Status)
		}
	}
	both := http.Header{"Cookie": {"theirs=1; " + strings.Join(jar, "; ")}}
	for host, name := range map[string]string{desk: "desk", docs: "docs"} {
		resp, body := q.get(host, "/", both)
		if resp.StatusCode != http.StatusOK || body != name {
			t.Fatalf("%s: %s %q", host, resp.Status, body)
		}
		if r := <-seen[name]; r.Header.Get("Cookie") != "theirs=1" || r.Host != host {
			t.Errorf("%s gets host %s with the cookies %q", name, r.Host, r.Header.Values("Cookie"))
		}
	}
	if resp, _ := q.get(docs, "/", http.Header{"Cookie": {cookieOf[desk]}}); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("with the cookie of another port: %s", resp.Status)
	}
	_, value, _ := strings.Cut(cookieOf[desk], "=")
	name, _, _ := strings.Cut(cookieOf[docs], "=")
	if resp, _ := q.get(docs, "/", http.Header{"Cookie": {name + "=" + value}}); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("with the cookie of another port under the name of this one: %s", resp.Status)
	}
	if resp, body := q.get(docs, "/", http.Header{"Authorization": {"Bearer " + q.token}}); resp.StatusCode != http.StatusOK || body != "docs" {
		t.Errorf("with an access token: %s %q", resp.Status, body)
	}
	resp, _ := q.get(docs, "/tree?x=1", http.Header{"Accept": {"text/html"}})
	to, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || to.Host != "berth.test" || to.Query().Get("path") != "/tree?x=1" {
		t.Errorf("without a cookie, a person goes to %s, %v", to, err)
	}
	if resp, _ := q.get("ports.test:20009", "/", nil); resp.StatusCode != http.StatusNotFound {
		t.Errorf("a port without an app: %s", resp.Status)
	}
	if resp, _ := q.get("evil.test:20000", "/", both); resp.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("another host: %s", resp.Status)
	}
	q.Client.Session.UpdateOne(q.session).SetStatus(lifecycle.Terminated).SetTerminatedAt(time.Now()).ExecX(viewer.SystemContext(t.Context()))
	q.g.recheck(t.Context(), q.session.ID)
	if resp, _ := q.get(desk, "/", both); resp.StatusCode < http.StatusBadRequest {
		t.Errorf("after the end of the session: %s", resp.Status)
	}
}

// A public app has a port before anyone opens it, because visitors cannot request a port. Their
// browser deletes the data of the previous app once.
func TestPublicAppOnAPort(t *testing.T) {
	program := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, r.Header.Get("Cookie")) }))
	t.Cleanup(program.Close)
	port, err := strconv.Atoi(program.URL[strings.LastIndexByte(program.URL, ':')+1:])
	if err != nil {
		t.Fatal(err)
	}
	q := newQuay(t, appstate.App{Name: "desk", Port: port, Command: []string{"serve"}})
	sys := viewer.SystemContext(t.Context())
	p := q.Client.ResourcePolicy.Create().SetName("public").SetMaxPublicAppTime(3600).SaveX(sys)
	q.Client.PolicyAttachment.Create().SetPolicy(p).SetUser(q.A.Member).ExecX(sys)
	_, err = q.g.Apps.ShareApp(viewer.With(t.Context(), q.viewer), app.ShareAppInput{Session: q.session.ID, App: "desk", Audience: access.AppPublic})
	if err != nil {
		t.Fatal(err)
	}
	const host = "ports.test:20000"
	person := http.Header{"Accept": {"text/html"}}
	resp, _ := q.get(host, "/", person)
	c := resp.Cookies()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Clear-Site-Data") == "" || len(c) != 1 || !c[0].HttpOnly {
		t.Fatalf("a visitor: %s, %v", resp.Status, resp.Header)
	}
	person.Set("Cookie", c[0].Name+"="+c[0].Value)
	if resp, got := q.get(host, "/", person); resp.StatusCode != http.StatusOK || resp.Header.Get("Clear-Site-Data") != "" || got != "" {
		t.Errorf("the visitor again: %s, %v, the app gets %q", resp.Status, resp.Header, got)
	}
	if _, err := q.g.Apps.UnshareApp(viewer.With(t.Context(), q.viewer), app.AppActionInput{Session: q.session.ID, App: "desk"}); err != nil {
		t.Fatal(err)
	}
	q.g.recheck(t.Context(), q.session.ID)
	if resp, _ := q.get(host, "/", http.Header{"Cookie": person["Cookie"]}); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("with the cookie of a visitor, after the app is no longer public: %s", resp.Status)
	}
}
