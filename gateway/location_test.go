package gateway

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/manager/app"
)

func testGateway() *Gateway {
	return &Gateway{modes: []mode{{domain: ".apps.test"}, {host: "paths.test:81"}}}
}

// Only the host of a request selects the app. Other names of the gateway, and labels that it did
// not create, open nothing.
func TestHostsThatAreNotOurs(t *testing.T) {
	g := testGateway()
	target := app.Target{Session: id.New(id.Session), App: "jupyter"}
	label := target.Label()
	for _, c := range []struct {
		name, host, path string
		ok               bool
	}{
		{"the host of an app", label + ".apps.test", "/", true},
		{"with a port", label + ".apps.test:8420", "/", true},
		{"in capitals", strings.ToUpper(label) + ".APPS.test", "/", true},
		{"with a final dot", label + ".apps.test.", "/", true},
		{"an address", "127.0.0.1:8420", "/", false},
		{"a foreign name", label + ".apps.test.evil.example", "/", false},
		{"a domain with the same ending", label + ".evilapps.test", "/", false},
		{"two labels", "x." + label + ".apps.test", "/", false},
		{"the plain id of the session", "jupyter--" + target.Session.String() + ".apps.test", "/", false},
		{"the id of a user", app.Target{Session: id.New(id.User), App: "jupyter"}.Label() + ".apps.test", "/", false},
		{"no app", "--" + label + ".apps.test", "/", false},
		{"a port", app.Target{Session: target.Session, App: "8080"}.Label() + ".apps.test", "/", true},
		{"no port", app.Target{Session: target.Session, App: "65536"}.Label() + ".apps.test", "/", false},
		{"a port with a leading zero", app.Target{Session: target.Session, App: "080"}.Label() + ".apps.test", "/", false},
		{"another kernel", app.Target{Session: target.Session, App: "jupyter", Kernel: 3}.Label() + ".apps.test", "/", true},
		{"a path", "paths.test:81", "/apps/" + label + "/lab", true},
		{"a path on a host of an app's domain", "paths.apps.test", "/apps/" + label + "/lab", false},
		{"a path with ..", "paths.test:81", "/x/../apps/" + label + "/", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "http://x"+c.path, nil)
			r.Host = c.host
			r.Header.Set("X-Forwarded-Host", label+".apps.test")
			at, _, ok := g.locate(r)
			if ok != c.ok || ok && at.target.Session != target.Session {
				t.Errorf("%v, %+v", ok, at)
			}
		})
	}
	if len(app.Target{Session: target.Session, App: strings.Repeat("a", 24), Kernel: 28}.Label()) > 63 {
		t.Error("the longest label does not fit into DNS")
	}
}

// A page of a sibling app cannot use the cookie of another app, although browsers send it.
func TestRequestsOfOtherOrigins(t *testing.T) {
	g := testGateway()
	host := app.Target{Session: id.New(id.Session), App: "jupyter"}.Label() + ".apps.test"
	for _, c := range []struct {
		name, method string
		header       map[string]string
		ok           bool
	}{
		{"a page of the app", "POST", map[string]string{"Origin": "http://" + host, "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}, true},
		{"a program", "POST", nil, true},
		{"typed address", "GET", map[string]string{"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, true},
		{"a link of a sibling", "GET", map[string]string{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, true},
		{"a form of a sibling", "POST", map[string]string{"Origin": "http://evil.apps.test", "Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, false},
		{"a frame of a sibling", "GET", map[string]string{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, false},
		{"a script of a sibling", "GET", map[string]string{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"}, false},
		{"a WebSocket of a sibling", "GET", map[string]string{"Origin": "http://evil.apps.test", "Upgrade": "websocket"}, false},
		{"a WebSocket of the page", "GET", map[string]string{"Origin": "http://berth.test", "Upgrade": "websocket"}, false},
		{"a sandbox", "POST", map[string]string{"Origin": "null"}, false},
		{"another scheme", "POST", map[string]string{"Origin": "https://" + host}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest(c.method, "http://"+host+"/api", nil)
			for name, value := range c.header {
				r.Header.Set(name, value)
			}
			at, _, ok := g.locate(r)
			if !ok {
				t.Fatal("not located")
			}
			if why := at.trespass(r); (why == "") != c.ok {
				t.Errorf("refused: %q", why)
			}
		})
	}
}

// A service worker of one app would see the requests of all apps on the same origin.
func TestServiceWorkersInPathMode(t *testing.T) {
	g := testGateway()
	label := app.Target{Session: id.New(id.Session), App: "jupyter"}.Label()
	for url, refused := range map[string]bool{"http://paths.test:81/apps/" + label + "/sw.js": true, "http://" + label + ".apps.test/sw.js": false} {
		r := httptest.NewRequest("GET", url, nil)
		r.Header.Set("Service-Worker", "script")
		at, _, ok := g.locate(r)
		if !ok || (at.trespass(r) != "") != refused {
			t.Errorf("%s: located %v, %q", url, ok, at.trespass(r))
		}
	}
}

// The cookie of one app opens no other app, and it expires. A forged cookie opens nothing.
func TestCookieIsForOneApp(t *testing.T) {
	keys, err := seal.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := testGateway()
	g.Keys = keys
	target := app.Target{Session: id.New(id.Session), App: "jupyter"}
	value := func(until time.Duration) string {
		v, err := g.seal(claims{Target: target, Credential: uuid.New(), User: uuid.New(), Expires: time.Now().Add(until)})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	good := value(time.Hour)
	if _, ok := g.unseal(good, target); !ok {
		t.Error("the cookie does not open its app")
	}
	sibling, kernel := target, target
	sibling.App, kernel.Kernel = "code-server", 1
	for name, refused := range map[string]bool{
		"sibling": second(g.unseal(good, sibling)), "kernel": second(g.unseal(good, kernel)),
		"expired": second(g.unseal(value(-time.Second), target)), "changed": second(g.unseal(good[:len(good)-2]+"AA", target)), "empty": second(g.unseal("", target)),
	} {
		if refused {
			t.Errorf("%s: the cookie is accepted", name)
		}
	}
}

func second[T any](_ T, ok bool) bool { return ok }
