package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"path"
	"slices"
	"sync/atomic"

	"google.golang.org/grpc/codes"

	"github.com/berthhq/berth/plugins/volume/driver"
	"github.com/berthhq/berth/plugins/volume/driver/rest"
)

const base = "/webhdfs/v1"

// namenodes are the name nodes of one file system: one is active, and the others respond that they
// are not.
type namenodes struct {
	options options
	all     []*rest.Client
	active  atomic.Int32
}

func connect(o options) (*namenodes, error) {
	n := &namenodes{options: o}
	for _, address := range append([]string{o.URL}, o.MoreURLs...) {
		one := o.Options
		one.URL, one.MoreURLs = address, nil
		var auth rest.Auth
		if o.Password != "" && o.Token == "" {
			auth = rest.Basic{User: o.Username, Password: o.Password}
		}
		c, err := rest.New(one, auth)
		if err != nil {
			n.close()
			return nil, err
		}
		c.Explain = explain
		n.all = append(n.all, c)
	}
	return n, nil
}

func (n *namenodes) close() {
	for _, c := range n.all {
		c.Close()
	}
}

// explain finds the exception in an error response.
func explain(r *rest.Response) (code, message string) {
	var body struct {
		Exception struct {
			Class   string `json:"exception"`
			Message string `json:"message"`
		} `json:"RemoteException"`
	}
	_ = json.Unmarshal(r.Body, &body) // the body may not be JSON
	return body.Exception.Class, body.Exception.Message
}

// passing are temporary exceptions, which come with status 403.
var passing = []string{"StandbyException", "ObserverRetryOnActiveException", "RetriableException", "SafeModeException"}

// do calls the active name node; p is a path in HDFS.
func (n *namenodes) do(ctx context.Context, method, op, p string, parameters url.Values, into any) (err error) {
	for range n.all {
		at := n.active.Load()
		c := n.all[int(at)%len(n.all)]
		err = n.ask(ctx, c, method, op, p, parameters, into)
		var e *rest.Error
		if errors.As(err, &e) && slices.Contains(passing, e.Code) {
			e.As = codes.Unavailable
		}
		if e == nil || !e.Busy() || e.Code == "SafeModeException" || ctx.Err() != nil {
			return err
		}
		n.active.CompareAndSwap(at, at+1)
	}
	return err
}

func (n *namenodes) ask(ctx context.Context, c *rest.Client, method, op, p string, parameters url.Values, into any) error {
	q := url.Values{"op": {op}}
	for k, v := range parameters {
		q[k] = v
	}
	switch {
	case n.options.Token != "":
		token, err := c.Secret(n.options.Token)
		if err != nil {
			return err
		}
		q.Set("delegation", token)
	case n.options.Password == "":
		q.Set("user.name", n.options.Username)
	}
	escaped := (&url.URL{Path: base + path.Join("/", p)}).EscapedPath()
	return c.JSON(ctx, rest.Request{Method: method, Path: escaped, Query: q}, into)
}

// summary is the content summary of a directory; a quota of -1 means none.
type summary struct {
	Directories int64 `json:"directoryCount"` // including the directory itself
	Files       int64 `json:"fileCount"`
	Names       int64 `json:"quota"`
	Consumed    int64 `json:"spaceConsumed"` // by all replicas
	Space       int64 `json:"spaceQuota"`    // of all replicas
}

func (n *namenodes) summary(ctx context.Context, p string) (summary, error) {
	out := struct {
		Summary *summary `json:"ContentSummary"`
	}{Summary: &summary{Names: none, Space: none}}
	err := n.do(ctx, http.MethodGet, "GETCONTENTSUMMARY", p, nil, &out)
	return *out.Summary, driver.Error("", err)
}

func (n *namenodes) replication(ctx context.Context) (int64, error) {
	var out struct {
		Defaults struct {
			Replication int64 `json:"replication"`
		} `json:"FsServerDefaults"`
	}
	err := n.do(ctx, http.MethodGet, "GETSERVERDEFAULTS", "/", nil, &out)
	return out.Defaults.Replication, err
}
