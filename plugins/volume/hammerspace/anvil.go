package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"path"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	"github.com/berthhq/berth/plugins/volume/driver/rest"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

const (
	base   = "/mgmt/v1.2/rest"
	shares = base + "/shares"
	tasks  = base + "/tasks"
)

// namespace is one open volume.
type namespace struct {
	*driver.Mount
	client  *rest.Client
	options options
}

// login creates a session, which is a cookie.
func login(o options) rest.Auth {
	return rest.NewLogin(func(ctx context.Context, c *rest.Client, _ *rest.Session) (*rest.Session, error) {
		password, err := c.Secret(o.Password)
		if err != nil {
			return nil, err
		}
		r, err := c.Do(ctx, rest.Request{
			Method: http.MethodPost, Path: base + "/login", Anonymous: true, Again: true,
			Body: url.Values{"username": {o.Username}, "password": {password}},
		})
		if err != nil {
			return nil, err
		}
		cookies := r.Cookies()
		if len(cookies) == 0 {
			return nil, errors.New("the Anvil's answer to the login sets no cookie")
		}
		return &rest.Session{Cookies: cookies}, nil
	})
}

func open(ctx context.Context, m *driver.Mount, o options) (driver.Volume, error) {
	client, err := rest.New(o.Options, login(o))
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "options: %v", err)
	}
	client.Expired = func(r *rest.Response) bool {
		return r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden
	}
	n := &namespace{Mount: m, client: client, options: o}
	if _, err := n.state(ctx); err != nil {
		client.Close()
		return nil, err
	}
	return n, nil
}

// state is the status of the cluster; numbers are text.
type state struct {
	Name     string `json:"name"`
	State    string `json:"state"`
	Capacity struct {
		Total json.Number `json:"total"`
		Used  json.Number `json:"used"`
		Free  json.Number `json:"free"`
	} `json:"capacity"`
}

func (n *namespace) state(ctx context.Context) (s state, err error) {
	return s, n.client.Get(ctx, base+"/cntl/state", nil, &s)
}

// change requests a change and returns after its task has ended.
func (n *namespace) change(ctx context.Context, q rest.Request) error {
	r, err := n.client.Do(ctx, q)
	if err != nil || r.Status != http.StatusAccepted {
		return err
	}
	at, err := url.Parse(r.Header.Get("Location"))
	if err != nil || path.Dir(at.Path) != tasks {
		return status.Errorf(codes.Internal, "%s %s: the Anvil accepted it without naming a task", q.Method, q.Path)
	}
	return n.wait(ctx, path.Base(at.Path))
}

type task struct {
	UUID    string `json:"uuid"`
	Name    string `json:"name"`
	Status  string `json:"status"`
	Exit    string `json:"exitValue"`
	Message string `json:"statusMessage"`
	Params  struct {
		Name string `json:"name"`
	} `json:"paramsMap"`
}

// ended reports whether a task has ended, and returns its error.
func (n *namespace) ended(t task) (bool, error) {
	switch t.Status {
	case "COMPLETED":
		return true, nil
	case "FAILED", "HALTED", "CANCELLED", "VALIDATION_FAILED", "RESUMED":
		message := t.Message
		if message == "" {
			message = t.Exit
		}
		return true, n.client.Failed(t.Name+" "+t.UUID, t.Status, message)
	}
	return false, nil
}

// wait waits for the end of a task.
func (n *namespace) wait(ctx context.Context, id string) error {
	return rest.Poll(ctx, "task "+id, 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		var t task
		if err := n.client.Get(ctx, tasks+"/"+url.PathEscape(id), nil, &t); err != nil {
			return false, err
		}
		return n.ended(t)
	})
}

// making returns the id of a running task that creates a share, or "". Another proxy, or an earlier
// request whose response was lost, may have started it.
func (n *namespace) making(ctx context.Context, name string) (id string, err error) {
	var all []task
	if err := n.client.Get(ctx, tasks, nil, &all); err != nil {
		return "", err
	}
	for _, t := range all {
		if end, _ := n.ended(t); !end && t.Params.Name == name {
			id = t.UUID
		}
	}
	return id, nil
}

// Traits implements driver.Volume.
func (n *namespace) Traits() driver.Traits {
	t := driver.Traits{Enforcement: pb.Enforcement_DELAYED}
	if n.options.Portal == "" {
		t.Lacks = []pb.Capability{pb.Capability_PER_SCOPE_MOUNT}
	}
	return t
}

// Close implements driver.Volume.
func (n *namespace) Close() error {
	n.client.Close()
	return nil
}
