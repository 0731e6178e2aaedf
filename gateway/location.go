package gateway

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/berthhq/berth/manager/app"
)

// location is the app that a request is for, and the path below the app's prefix.
type location struct {
	mode   mode
	target app.Target
	port   int    // of the app in port mode; find sets its target
	prefix string // "/" on a host or port of its own, otherwise "/apps/LABEL/"
	path   string // path of the request below the prefix, with a leading slash
}

// locate returns the location of a request. It accepts only the hosts in the URLs of apps, so that
// other names of the gateway open nothing. slash reports whether only the slash after the label is
// missing.
func (g *Gateway) locate(r *http.Request) (at location, slash, ok bool) {
	for _, m := range g.modes {
		if m.domain != "" && m.owns(r.Host) {
			label := strings.TrimSuffix(strings.ToLower(hostname(r.Host)), m.domain)
			t, ok := app.ParseLabel(label)
			return location{mode: m, target: t, prefix: "/", path: r.URL.Path}, false, ok
		}
		if port, ours := m.portOf(r.Host); ours {
			return location{mode: m, port: port, prefix: "/", path: r.URL.Path}, false, true
		}
		if m.domain == "" && m.ports == nil && strings.EqualFold(r.Host, m.host) {
			rest, below := strings.CutPrefix(r.URL.Path, app.PathPrefix)
			label, path, slashed := strings.Cut(rest, "/")
			t, ok := app.ParseLabel(label)
			return location{mode: m, target: t, prefix: app.PathPrefix + label + "/", path: "/" + path}, !slashed, ok && below
		}
	}
	return at, false, false
}

// origin returns the origin of the app's pages.
func (at location) origin(r *http.Request) string {
	if at.mode.secure {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// trespass returns the reason why a request from a page of another origin is rejected, or "". For
// browsers, sibling hosts are the same site, so they send the cookie of an app with requests from
// other apps.
func (at location) trespass(r *http.Request) string {
	h := r.Header
	if o := h.Get("Origin"); o != "" && !sameOrigin(o, at.origin(r)) {
		return "the request comes from a page of another origin"
	}
	navigation := h.Get("Sec-Fetch-Mode") == "navigate" && (r.Method == http.MethodGet || r.Method == http.MethodHead)
	switch site := h.Get("Sec-Fetch-Site"); {
	case site != "same-site" && site != "cross-site":
	case !navigation:
		return "the request comes from a page of another origin"
	case h.Get("Sec-Fetch-Dest") != "document":
		return "an app cannot be embedded in a page of another origin"
	}
	if at.mode.domain == "" && h.Get("Service-Worker") != "" {
		return "apps without a host of their own cannot register service workers" // another app may get the port later
	}
	return ""
}

func sameOrigin(a, b string) bool {
	x, err := url.Parse(a)
	if err != nil {
		return false
	}
	y, err := url.Parse(b)
	return err == nil && x.Scheme == y.Scheme && strings.EqualFold(x.Host, y.Host)
}

// navigates reports whether a request loads a page in a browser, and is not sent by a program.
func navigates(r *http.Request) bool {
	if r.Method != http.MethodGet || r.Header.Get("Upgrade") != "" {
		return false
	}
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" {
		return mode == "navigate"
	}
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}
