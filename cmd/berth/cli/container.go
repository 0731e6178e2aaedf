package cli

import (
	"context"
	"fmt"
	"regexp"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/client"
)

// containerName is the last part of a reference to a container of a session.
var containerName = regexp.MustCompile(`^(.+)\.(main|sub[1-9][0-9]*)$`)

// SplitContainer reads SESSION[.CONTAINER]. Without a container, it is main.
func SplitContainer(ref string) (session, container string) {
	if m := containerName.FindStringSubmatch(ref); m != nil {
		return m[1], m[2]
	}
	return ref, "main"
}

// RunningSession finds a session and its containers, and fails unless the session is running.
func RunningSession(ctx context.Context, c *client.Client, ref string) (*client.SessionContainers, error) {
	found, err := FindSession(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	list, err := c.SessionContainers(ctx, client.SessionFilter{ID: found.ID, Limit: 1})
	switch {
	case err != nil:
		return nil, err
	case len(list) == 0:
		return nil, NotFound("session", ref, "see: berth session ls")
	case list[0].Status == "RUNNING":
		return &list[0], nil
	case list[0].Status == "PENDING":
		return nil, fmt.Errorf("session %s is pending and not running yet; to see why: berth session why %s: %w", found.Name, found.Name, errdefs.ErrFailedPrecondition)
	}
	return nil, fmt.Errorf("session %s is %s; only a running session can be reached: %w", found.Name, list[0].Status, errdefs.ErrFailedPrecondition)
}
