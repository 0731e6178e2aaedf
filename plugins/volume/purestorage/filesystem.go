package main

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"github.com/berthhq/berth/plugins/volume/driver/rest"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// filesystem is a file system of the array.
type filesystem struct {
	Name        string `json:"name"`
	Provisioned int64  `json:"provisioned"` // 0 = unlimited
	Hard        bool   `json:"hard_limit_enabled"`
	Destroyed   bool   `json:"destroyed"` // and kept for a day
	Space       struct {
		Virtual int64 `json:"virtual"` // before data reduction
	} `json:"space"`
}

func (f *filesystem) limit() *pb.Limit {
	l := &pb.Limit{}
	if f.Hard {
		l.Bytes = &f.Provisioned
	}
	return l
}

// missing reports whether the array has no such file system, which it reports by status 400 and a
// message.
func missing(err error) bool {
	var e *rest.Error
	return errors.As(err, &e) && (e.Status == http.StatusNotFound || e.Status == http.StatusBadRequest && strings.Contains(e.Message, "does not exist"))
}

// find returns a file system, also a destroyed one, or nil.
func (b *blade) find(ctx context.Context, name string) (*filesystem, error) {
	var found items[filesystem]
	err := b.client.Get(ctx, b.api+"/file-systems", url.Values{"names": {name}}, &found)
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, f := range found.Items {
		if f.Name == name {
			return &f, nil
		}
	}
	return nil, nil
}

// all returns the file systems whose names begin with the prefix.
func (b *blade) all(ctx context.Context) iter.Seq2[filesystem, error] {
	q := url.Values{"filter": {"name='" + b.options.Prefix + "*'"}, "destroyed": {"false"}}
	next := func(p *items[filesystem], _ *rest.Response) (*rest.Request, error) {
		if p.Next == nil || *p.Next == "" {
			return nil, nil
		}
		after := url.Values{"continuation_token": {*p.Next}}
		for k, v := range q {
			after[k] = v
		}
		return &rest.Request{Path: b.api + "/file-systems", Query: after}, nil
	}
	return rest.All(ctx, b.client, rest.Request{Path: b.api + "/file-systems", Query: q}, func(p *items[filesystem]) []filesystem { return p.Items }, next)
}

// bound converts a limit to fields of a file system: a size, and that it is a hard limit.
func bound(limit *pb.Limit) map[string]any {
	return map[string]any{"provisioned": limit.GetBytes(), "hard_limit_enabled": limit.Bytes != nil}
}

func (b *blade) create(ctx context.Context, name string, limit *pb.Limit) error {
	body := bound(limit)
	nfs := map[string]any{"v3_enabled": b.options.Version == "3", "v4_1_enabled": b.options.Version == "4.1"}
	if b.options.Rules != "" {
		nfs["rules"] = b.options.Rules
	}
	body["nfs"] = nfs
	return b.change(ctx, http.MethodPost, url.Values{"names": {name}}, body)
}

// resize changes the limit, also to less than the stored data.
func (b *blade) resize(ctx context.Context, name string, limit *pb.Limit) error {
	return b.change(ctx, http.MethodPatch, url.Values{"names": {name}, "ignore_usage": {"true"}}, bound(limit))
}

// destroy destroys a file system, so that clients cannot use it, or recovers it.
func (b *blade) destroy(ctx context.Context, name string, yes bool) error {
	return b.change(ctx, http.MethodPatch, url.Values{"names": {name}}, map[string]any{"destroyed": yes})
}

// eradicate removes a destroyed file system permanently.
func (b *blade) eradicate(ctx context.Context, name string) error {
	return b.change(ctx, http.MethodDelete, url.Values{"names": {name}}, nil)
}

func (b *blade) change(ctx context.Context, method string, q url.Values, body any) error {
	_, err := b.client.Do(ctx, rest.Request{Method: method, Path: b.api + "/file-systems", Query: q, Body: body, Again: true})
	return err
}
