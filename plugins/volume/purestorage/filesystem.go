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

// filesystem is one of the array's.
type filesystem struct {
	Name        string `json:"name"`
	Provisioned int64  `json:"provisioned"` // 0 = without bounds
	Hard        bool   `json:"hard_limit_enabled"`
	Destroyed   bool   `json:"destroyed"` // and kept for a day
	Space       struct {
		Virtual int64 `json:"virtual"` // as its clients wrote it
	} `json:"space"`
}

func (f *filesystem) limit() *pb.Limit {
	l := &pb.Limit{}
	if f.Hard {
		l.Bytes = &f.Provisioned
	}
	return l
}

// missing reports whether the array says that it has no such file system: 400, and words.
func missing(err error) bool {
	var e *rest.Error
	return errors.As(err, &e) && (e.Status == http.StatusNotFound || e.Status == http.StatusBadRequest && strings.Contains(e.Message, "does not exist"))
}

// find looks for a file system, also one that was destroyed; nil when there is none.
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

// all are the file systems whose names begin with the prefix.
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

// bound is what a file system is told of a limit: a size, and that it is a hard one.
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

// resize changes the limit, also to less than is stored.
func (b *blade) resize(ctx context.Context, name string, limit *pb.Limit) error {
	return b.change(ctx, http.MethodPatch, url.Values{"names": {name}, "ignore_usage": {"true"}}, bound(limit))
}

// destroy takes a file system from its clients, or gives it back.
func (b *blade) destroy(ctx context.Context, name string, yes bool) error {
	return b.change(ctx, http.MethodPatch, url.Values{"names": {name}}, map[string]any{"destroyed": yes})
}

// eradicate removes one that was destroyed.
func (b *blade) eradicate(ctx context.Context, name string) error {
	return b.change(ctx, http.MethodDelete, url.Values{"names": {name}}, nil)
}

func (b *blade) change(ctx context.Context, method string, q url.Values, body any) error {
	_, err := b.client.Do(ctx, rest.Request{Method: method, Path: b.api + "/file-systems", Query: q, Body: body, Again: true})
	return err
}
