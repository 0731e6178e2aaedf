package main

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	"github.com/berthhq/berth/plugins/volume/driver/rest"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// Paths of the API end with a slash.
const (
	base     = "/api/v1"
	tokens   = base + "/token/"
	quotas   = base + "/quotas/"
	clusters = base + "/clusters/"
)

// view is one open volume.
type view struct {
	*driver.Mount
	client  *rest.Client
	options options
	tenant  int64
	version string
	reason  string // why there are no limits
	trash   string // why the cluster cannot delete trees
}

// login returns a session with an access token, using the refresh token if there is one. The API
// does not report when the tokens expire.
func login(o options) rest.Auth {
	if o.Token != "" {
		return rest.Token{Prefix: "Api-Token ", Secret: o.Token}
	}
	return rest.NewLogin(func(ctx context.Context, c *rest.Client, old *rest.Session) (*rest.Session, error) {
		q := rest.Request{Method: http.MethodPost, Path: tokens, Anonymous: true, Again: true}
		if old != nil && old.Refresh != "" {
			q.Path, q.Body = tokens+"refresh/", map[string]string{"refresh": old.Refresh}
		} else {
			password, err := c.Secret(o.Password)
			if err != nil {
				return nil, err
			}
			q.Body = map[string]string{"username": o.Username, "password": password}
		}
		var out struct {
			Access  string `json:"access"`
			Refresh string `json:"refresh"`
		}
		if err := c.JSON(ctx, q, &out); err != nil {
			return nil, err
		}
		if out.Refresh == "" && old != nil {
			out.Refresh = old.Refresh
		}
		return &rest.Session{Header: http.Header{"Authorization": {"Bearer " + out.Access}}, Refresh: out.Refresh}, nil
	})
}

// expired distinguishes an expired token, which is status 403 here, from a missing permission of
// the role.
func expired(r *rest.Response) bool {
	return r.Status == http.StatusUnauthorized ||
		r.Status == http.StatusForbidden && bytes.Contains(bytes.ToLower(r.Body), []byte("token"))
}

func open(ctx context.Context, m *driver.Mount, o options) (driver.Volume, error) {
	client, err := rest.New(o.Options, login(o))
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "options: %v", err)
	}
	client.Expired = expired
	v := &view{Mount: m, client: client, options: o}
	if err := v.open(ctx); err != nil {
		client.Close()
		return nil, err
	}
	return v, nil
}

func (v *view) open(ctx context.Context) error {
	type named struct {
		ID      int64  `json:"id"`
		Name    string `json:"name"`
		Version string `json:"sys_version"`
	}
	found := false
	for t, err := range all[named](ctx, v, base+"/tenants/", url.Values{"name": {v.options.Tenant}}) {
		if err != nil {
			return err
		}
		if t.Name == v.options.Tenant {
			v.tenant, found = t.ID, true
		}
	}
	if !found {
		return status.Errorf(codes.FailedPrecondition, "the cluster has no tenant %q", v.options.Tenant)
	}
	for one, err := range all[named](ctx, v, base+"/versions/", url.Values{"status": {"success"}}) {
		if err != nil {
			return err
		}
		v.version = one.Version
		break // the newest
	}
	if _, err := v.quota(ctx, v.options.Path); err != nil {
		if !lacking(ctx, err) {
			return err
		}
		v.reason = "no limits: " + status.Convert(driver.Error("", err)).Message()
	}
	return v.tryTrash(ctx)
}

// lacking reports whether an error means that the product lacks a feature, rather than that it is
// unavailable.
func lacking(ctx context.Context, err error) bool {
	code := status.Code(driver.Error("", err))
	return ctx.Err() == nil && code != codes.Unavailable && code != codes.Unauthenticated
}

// list is a response with all items, or one page of them.
type list[T any] struct {
	all  []T
	next string
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *list[T]) UnmarshalJSON(raw []byte) error {
	if bytes.HasPrefix(raw, []byte("[")) {
		return json.Unmarshal(raw, &l.all)
	}
	var page struct {
		Results []T    `json:"results"`
		Next    string `json:"next"`
	}
	err := json.Unmarshal(raw, &page)
	l.all, l.next = page.Results, page.Next
	return err
}

// all returns the items of all pages of a list.
func all[T any](ctx context.Context, v *view, path string, q url.Values) iter.Seq2[T, error] {
	next := func(l *list[T], _ *rest.Response) (*rest.Request, error) {
		if l.next == "" {
			return nil, nil
		}
		r, err := v.client.Link(l.next)
		return &r, err
	}
	return rest.All(ctx, v.client, rest.Request{Path: path, Query: q}, func(l *list[T]) []T { return l.all }, next)
}

// inside returns the cluster's path of a path below the mount.
func (v *view) inside(path string) string {
	return strings.TrimRight(v.options.Path, "/") + "/" + path
}

// Traits implements driver.Volume.
func (v *view) Traits() driver.Traits {
	t := driver.Traits{Enforcement: pb.Enforcement_DELAYED, Inodes: v.options.FileLimits}
	if v.reason != "" {
		t = driver.Traits{Enforcement: pb.Enforcement_NONE}
	}
	if v.trash != "" {
		t.Lacks = []pb.Capability{pb.Capability_DELETE}
	}
	return t
}

// Close implements driver.Volume.
func (v *view) Close() error {
	v.client.Close()
	return nil
}
