package app

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/berthhq/berth/internal/problem"
)

// Ports is the configuration of port mode, in which every app has a port of one host.
type Ports struct {
	URL   string `json:"url"` // without a port, such as https://apps.example.org
	First int    `json:"first"`
	Last  int    `json:"last"`
	Page  string `json:"page"` // URL of the page, where users get the port of an app
}

// MaxPorts limits a range: a gateway listens on all of its ports.
const MaxPorts = 10_000

// Check returns an error if the range of ports cannot be used.
func (p *Ports) Check() error {
	switch {
	case p.First < 1 || p.Last > 65535 || p.First > p.Last:
		return problem.Invalid("app-ports", "%d-%d is not a range of ports", p.First, p.Last).WithLimit("1..65535")
	case p.Size() > MaxPorts:
		return problem.Invalid("app-ports", "%d-%d has %d ports", p.First, p.Last, p.Size()).WithLimit(strconv.Itoa(MaxPorts))
	}
	return nil
}

// Size is the number of ports of the range.
func (p *Ports) Size() int { return p.Last - p.First + 1 }

// Has reports whether a port is one of the range.
func (p *Ports) Has(port int) bool { return p.First <= port && port <= p.Last }

// At returns the URL of a port.
func (p *Ports) At(port int) string { return p.URL + ":" + strconv.Itoa(port) + "/" }

// origin reports whether a URL is at one of the ports.
func (p *Ports) origin(u *url.URL) bool {
	at, err := url.Parse(p.URL)
	if err != nil || !strings.EqualFold(at.Hostname(), u.Hostname()) {
		return false
	}
	port, err := strconv.Atoi(u.Port())
	return err == nil && p.Has(port)
}

// askURL returns the address at the page that opens an app without a port.
func (p *Ports) askURL(t Target) string {
	return p.Page + AskPath + "?" + url.Values{"app": {t.Label()}, "path": {"/"}}.Encode()
}

// Address returns the URL of an app at the live gateways, or "" if no gateway runs. port is the
// app's port, or 0 without one. All gateways have the same addresses. Sub-domain mode is preferred
// to port mode, and port mode to path mode.
func (s *Service) Address(t Target, port int) string {
	for _, g := range s.Gateways() {
		if g.Apps != "" {
			return strings.Replace(g.Apps, "*", t.Label(), 1) + "/"
		}
	}
	switch r := s.ports(); {
	case r != nil && r.Has(port):
		return r.At(port)
	case r != nil:
		return r.askURL(t)
	}
	for _, g := range s.Gateways() {
		if g.Paths != "" {
			return g.Paths + PathPrefix + t.Label() + "/"
		}
	}
	return ""
}

// ports returns the configuration of port mode, or nil in other modes.
func (s *Service) ports() *Ports {
	var r *Ports
	for _, g := range s.Gateways() {
		if g.Apps != "" {
			return nil
		}
		if r == nil {
			r = g.Ports
		}
	}
	return r
}

// Prefix returns the path of an app in path mode.
func (s *Service) Prefix(t Target) string {
	if s.ports() != nil {
		return "/"
	}
	for _, g := range s.Gateways() {
		if g.Apps != "" {
			return "/"
		}
	}
	return PathPrefix + t.Label() + "/"
}
