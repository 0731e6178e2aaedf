package stories

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// visitPort sends a request to the port of an app at the gateway with an address, and returns the
// body.
func visitPort(t *testing.T, address, at, cookie string) (*http.Response, string, error) {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+":"+u.Port()+u.RequestURI(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = u.Host
	if cookie != "" {
		r.Header.Set("Cookie", cookie)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

// In port mode, each app has the same port at all gateways, so that the browser continues at
// another gateway when one is killed.
func TestAppsOnPorts(t *testing.T) {
	first := 20000 + os.Getpid()%1000*8 // other tests run at the same time
	ports := fmt.Sprintf("%d-%d", first, first+7)
	const here, there = "127.0.0.2", "127.0.0.3"
	one := platform.GatewayOnPorts(t, "port-gateway-1", here, ports)
	platform.GatewayOnPorts(t, "port-gateway-2", there, ports)
	u := platform.User(t)
	t.Cleanup(func() { endAll(t, u) })
	session := u.Run(client.CreateSessionInput{Image: "minimal:1", Slots: cluster.Small(), Apps: []client.AppInput{
		{Name: "docs", Port: 8000, Command: []string{"sh", "-c", "mkdir -p /tmp/a; echo docs > /tmp/a/index.html; exec httpd -f -p 127.0.0.1:{port} -h /tmp/a"}},
		{Name: "desk", Port: 8001, Command: []string{"sh", "-c", "mkdir -p /tmp/b; echo desk > /tmp/b/index.html; exec httpd -f -p 127.0.0.1:{port} -h /tmp/b"}},
	}})
	u.Until(session.ID, "RUNNING")
	var opened *client.OpenedApp
	cluster.Eventually(t, "the manager lists the gateways", func() (ok bool) {
		var err error
		opened, err = u.OpenApp(t.Context(), client.OpenAppInput{Session: session.ID, App: "docs"})
		return err == nil
	})
	if !strings.HasPrefix(opened.Address, fmt.Sprintf("http://ports.localhost:%d/", first)) {
		t.Fatalf("address %s", opened.Address)
	}
	enter := func(o *client.OpenedApp) string {
		resp, _, err := visitPort(t, here, o.URL, "")
		if err != nil || len(resp.Cookies()) != 1 {
			t.Fatalf("enter: %v, %+v", err, resp)
		}
		return resp.Cookies()[0].Name + "=" + resp.Cookies()[0].Value
	}
	other, err := u.OpenApp(t.Context(), client.OpenAppInput{Session: session.ID, App: "desk"})
	if err != nil || other.Address == opened.Address {
		t.Fatalf("the other app: %+v, %v", other, err)
	}
	jar := enter(opened) + "; " + enter(other)
	shows := func(at string, o *client.OpenedApp) string {
		_, body, err := visitPort(t, at, o.Address, jar)
		if err != nil {
			return ""
		}
		return body
	}
	cluster.Eventually(t, "both apps answer", func() bool { return shows(here, opened) == "docs\n" && shows(here, other) == "desk\n" })
	if got := u.Shell().Must("app", "open", session.Name, "docs", "--no-browser"); !strings.Contains(got, opened.Address+".berth/enter") {
		t.Errorf("berth app open prints %q", got)
	}
	if err := one.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := shows(here, opened); got != "" {
		t.Errorf("a gateway that was killed answers %q", got)
	}
	cluster.Eventually(t, "both apps answer at the other gateway", func() bool { return shows(there, opened) == "docs\n" && shows(there, other) == "desk\n" })
	if now, err := u.OpenApp(t.Context(), client.OpenAppInput{Session: session.ID, App: "docs"}); err != nil || now.Address != opened.Address {
		t.Errorf("the app moved to %+v, %v", now, err)
	}
	t.Run("in a browser", func(t *testing.T) {
		platform.Offer(t, "python")
		platform.GatewayOnPorts(t, "port-gateway-3", "127.0.0.1", ports) // the address of ports.localhost in browsers
		u := platform.User(t)
		t.Cleanup(func() { endAll(t, u) })
		lab := u.Run(client.CreateSessionInput{Image: "python:3.11", Slots: cluster.Slots("cpu", "1", "mem", "512m")})
		u.Until(lab.ID, "RUNNING")
		opened, err := u.OpenApp(t.Context(), client.OpenAppInput{Session: lab.ID, App: "jupyter", Path: "/tree"})
		if err != nil {
			t.Fatal(err)
		}
		u.Walk("apps/jupyter", "BERTH_APP="+opened.URL, "BERTH_PICTURE=python-jupyter-ports")
	})
}
