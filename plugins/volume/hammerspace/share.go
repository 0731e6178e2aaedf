package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver/rest"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// share is the used part of a share; numbers are text in responses.
type share struct {
	Name  string       `json:"name"`
	Path  string       `json:"path"`
	State string       `json:"shareState"`
	Limit *json.Number `json:"shareSizeLimit"`
	Space struct {
		Used *json.Number `json:"used"`
	} `json:"space"`
	Inodes struct {
		Used *json.Number `json:"used"`
	} `json:"inodes"`
}

// number returns nil for a missing value or one that is not a number.
func number(n *json.Number) *int64 {
	if n == nil {
		return nil
	}
	v, err := n.Int64()
	if err != nil {
		return nil
	}
	return &v
}

// limit returns the share's limit, or nil for none, which can also be 0.
func (s *share) limit() *int64 {
	if n := number(s.Limit); n != nil && *n > 0 {
		return n
	}
	return nil
}

// fill copies a share's values to a scope.
func (s *share) fill(out *pb.Scope) {
	out.Limit.Bytes, out.UsedBytes, out.UsedInodes = s.limit(), number(s.Space.Used), number(s.Inodes.Used)
	out.Exact = out.UsedBytes != nil
}

// removed is the state of a share that is being removed or was removed.
const removed = "REMOVED"

func nameOf(scope string) string { return "berth-" + scope }

func (n *namespace) at(scope string) string { return shares + "/" + url.PathEscape(nameOf(scope)) }

func (n *namespace) inside(scope string) string { return path.Join(n.options.Path, scope) }

// share returns the share of a scope, or NOT_FOUND.
func (n *namespace) share(ctx context.Context, scope string) (*share, error) {
	var s share
	err := n.client.Get(ctx, n.at(scope), nil, &s)
	switch {
	case rest.IsStatus(err, http.StatusNotFound), err == nil && s.State == removed:
		return nil, status.Errorf(codes.NotFound, "share %s does not exist", nameOf(scope))
	case err != nil:
		return nil, err
	case path.Clean(s.Path) != n.inside(scope):
		return nil, status.Errorf(codes.FailedPrecondition, "share %s is at %s instead of %s", s.Name, s.Path, n.inside(scope))
	}
	return &s, nil
}

// make creates a scope's share.
func (n *namespace) make(ctx context.Context, scope string, limit *pb.Limit) error {
	body := map[string]any{
		"name": nameOf(scope), "path": n.inside(scope), "comment": "a quota scope of Berth", "extendedInfo": map[string]string{},
		"exportOptions": []map[string]any{{"subnet": n.options.Subnet, "accessPermissions": "RW", "rootSquash": n.options.RootSquash}},
	}
	if limit.Bytes != nil {
		body["shareSizeLimit"] = *limit.Bytes
	}
	failed := n.change(ctx, rest.Request{Method: http.MethodPost, Path: shares, Body: body, Again: true})
	if failed == nil || !rest.IsStatus(failed, http.StatusBadRequest, http.StatusConflict) {
		return failed
	}
	// The name is used by a share that is being created or already exists.
	if id, err := n.making(ctx, nameOf(scope)); err != nil {
		return err
	} else if id != "" {
		if err := n.wait(ctx, id); err != nil {
			return err
		}
	}
	if _, err := n.share(ctx, scope); err != nil {
		return fmt.Errorf("make share: %w", failed)
	}
	return n.resize(ctx, scope, limit)
}

// resize updates the whole share with another limit, and verifies it, because the Anvil's behavior
// for a missing limit is not documented.
func (n *namespace) resize(ctx context.Context, scope string, limit *pb.Limit) error {
	var whole map[string]json.RawMessage
	err := n.client.Get(ctx, n.at(scope), nil, &whole)
	if rest.IsStatus(err, http.StatusNotFound) {
		return status.Errorf(codes.NotFound, "share %s does not exist", nameOf(scope))
	}
	if err != nil {
		return err
	}
	delete(whole, "shareSizeLimit")
	if limit.Bytes != nil {
		if whole["shareSizeLimit"], err = json.Marshal(*limit.Bytes); err != nil {
			return err
		}
	}
	if err := n.change(ctx, rest.Request{Method: http.MethodPut, Path: n.at(scope), Body: whole}); err != nil {
		return fmt.Errorf("change share: %w", err)
	}
	s, err := n.share(ctx, scope)
	if err != nil {
		return err
	}
	got := s.limit()
	if (got == nil) != (limit.Bytes == nil) || got != nil && *got < *limit.Bytes {
		return status.Errorf(codes.FailedPrecondition, "the Anvil accepted another limit for share %s and kept the old one", s.Name)
	}
	return nil
}

// appear waits until a new share is visible in the namespace.
func (n *namespace) appear(ctx context.Context, scope string) error {
	return rest.Poll(ctx, "share of "+scope+" to appear", 50*time.Millisecond, func(context.Context) (bool, error) {
		d, err := n.OpenTree(scope)
		if status.Code(err) == codes.NotFound {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		return true, d.Close()
	})
}

// unmake removes an empty share with its directory.
func (n *namespace) unmake(ctx context.Context, scope string) error {
	q := url.Values{"delete-path": {"true"}, "delete-delay": {"0"}}
	err := n.change(ctx, rest.Request{Method: http.MethodDelete, Path: n.at(scope), Query: q})
	going := rest.IsStatus(err, http.StatusBadRequest) && strings.Contains(err.Error(), removed)
	if err != nil && !going && !rest.IsStatus(err, http.StatusNotFound) {
		return fmt.Errorf("delete share: %w", err)
	}
	return rest.Poll(ctx, "share of "+scope+" to go", 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		err := n.client.Get(ctx, n.at(scope), nil, new(share))
		if rest.IsStatus(err, http.StatusNotFound) {
			return true, nil
		}
		return false, err
	})
}
