package ssh

import (
	"context"
	"regexp"
	"strings"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
)

// host is one container as ssh sees it.
type host struct {
	Name      string `json:"host"`
	Session   string `json:"session"`
	Container string `json:"container"`
	// User is the user name for the gateway: the ID of the session, with the container if it is
	// not the main one.
	User string `json:"user"`
}

// hostName is a name of a session that can be a part of a host name.
var hostName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// hosts returns the containers of a session. byID names them by the ID of the session, because
// its name is ambiguous.
func hosts(s client.SessionContainers, byID bool) []host {
	name := s.Name
	if byID || !hostName.MatchString(name) {
		name = s.ID
	}
	var all []host
	for _, k := range s.Kernels {
		h := host{Name: "berth." + name, Session: s.Name, Container: k.Hostname, User: s.ID}
		if k.Hostname != "main" {
			h.Name, h.User = h.Name+"."+k.Hostname, h.User+"."+k.Hostname
		}
		all = append(all, h)
	}
	return all
}

// reach finds the container that SESSION[.CONTAINER] names, and the gateway to it.
func reach(ctx context.Context, a *cli.App, l login, ref string) (host, *gateway, error) {
	c, err := a.Client()
	if err != nil {
		return host{}, nil, err
	}
	ref, container := cli.SplitContainer(ref)
	s, err := cli.RunningSession(ctx, c, ref)
	if err != nil {
		return host{}, nil, err
	}
	var have []string
	for _, h := range hosts(*s, false) {
		if h.Container == container {
			g, err := newGateway(ctx, a, c, l)
			return h, g, err
		}
		have = append(have, h.Container)
	}
	return host{}, nil, cli.NotFound("container", container, "the session has: "+strings.Join(have, ", "))
}
