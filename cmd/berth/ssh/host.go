package ssh

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/containerd/errdefs"

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

var (
	// containerName is the last part of a reference to another container than the main one.
	containerName = regexp.MustCompile(`^(.+)\.(main|sub[1-9][0-9]*)$`)
	// hostName is a name of a session that can be a part of a host name.
	hostName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
)

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
	container := "main"
	if m := containerName.FindStringSubmatch(ref); m != nil {
		ref, container = m[1], m[2]
	}
	s, err := running(ctx, c, ref)
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

// running finds a session and its containers, and fails unless the session is running.
func running(ctx context.Context, c *client.Client, ref string) (*client.SessionContainers, error) {
	found, err := cli.FindSession(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	list, err := c.SessionContainers(ctx, client.SessionFilter{ID: found.ID, Limit: 1})
	switch {
	case err != nil:
		return nil, err
	case len(list) == 0:
		return nil, cli.NotFound("session", ref, "see: berth session ls")
	case list[0].Status == "RUNNING":
		return &list[0], nil
	case list[0].Status == "PENDING":
		return nil, fmt.Errorf("session %s is pending and not running yet; to see why: berth session why %s: %w", found.Name, found.Name, errdefs.ErrFailedPrecondition)
	}
	return nil, fmt.Errorf("session %s is %s; only a running session can be reached: %w", found.Name, list[0].Status, errdefs.ErrFailedPrecondition)
}
