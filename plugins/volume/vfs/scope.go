package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/volumepb"
)

var scopeName = regexp.MustCompile(`^[0-9a-f]{32}$`)

// withScope runs f with the volume's root after checking the scope's name.
func (p *plugin) withScope(volume, scope string, f func(*directory, *os.Root) error) error {
	if !scopeName.MatchString(scope) {
		return status.Errorf(codes.InvalidArgument, "scope %q is not 32 lower-case hex digits", scope)
	}
	d, err := p.volume(volume)
	if err != nil {
		return err
	}
	r, err := d.root()
	if err != nil {
		return err
	}
	defer r.Close()
	return f(d, r)
}

func (p *plugin) CreateScope(ctx context.Context, q *volumepb.ScopeRequest) (*volumepb.Scope, error) {
	want, err := wanted(q.Limit)
	if err != nil {
		return nil, err
	}
	var out *volumepb.Scope
	err = p.withScope(q.Volume, q.Scope, func(d *directory, r *os.Root) error {
		d.scopes.Lock()
		defer d.scopes.Unlock()
		if _, err := r.Lstat(q.Scope); errors.Is(err, fs.ErrNotExist) {
			if err := create(r, q.Scope, want); err != nil {
				return err
			}
		}
		out, err = d.scope(ctx, r, q.Scope)
		return err
	})
	return out, err
}

// create writes the limit first: a crash in between leaves no scope, and a
// limit that the next attempt replaces.
func create(r *os.Root, scope string, want limits) error {
	if err := writeLimits(r, scope, want); err != nil {
		return err
	}
	if err := r.Mkdir(scope, 0o755); err != nil {
		return failure("create scope", err)
	}
	if err := r.Chmod(scope, 0o755); err != nil { // the umask took bits away
		return failure("create scope", err)
	}
	return nil
}

func wanted(l *volumepb.Limit) (limits, error) {
	if l != nil && l.Inodes != nil {
		return limits{}, status.Error(codes.InvalidArgument, "limit.inodes: a plain directory cannot limit inodes")
	}
	if l == nil || l.Bytes == nil {
		return limits{}, nil
	}
	if *l.Bytes < 0 {
		return limits{}, status.Errorf(codes.InvalidArgument, "limit.bytes: %d is negative", *l.Bytes)
	}
	return limits{Bytes: l.Bytes}, nil
}

func (p *plugin) GetScope(ctx context.Context, q *volumepb.ScopeRef) (*volumepb.Scope, error) {
	var out *volumepb.Scope
	err := p.withScope(q.Volume, q.Scope, func(d *directory, r *os.Root) (err error) {
		out, err = d.scope(ctx, r, q.Scope)
		return err
	})
	return out, err
}

func (p *plugin) SetScopeLimit(ctx context.Context, q *volumepb.ScopeRequest) (*volumepb.Scope, error) {
	want, err := wanted(q.Limit)
	if err != nil {
		return nil, err
	}
	var out *volumepb.Scope
	err = p.withScope(q.Volume, q.Scope, func(d *directory, r *os.Root) error {
		d.scopes.Lock()
		defer d.scopes.Unlock()
		if _, err := scopeDir(r, q.Scope); err != nil {
			return err
		}
		if err := writeLimits(r, q.Scope, want); err != nil {
			return err
		}
		out, err = d.scope(ctx, r, q.Scope)
		return err
	})
	return out, err
}

func (p *plugin) DeleteScope(_ context.Context, q *volumepb.ScopeRef) (*volumepb.DeleteScopeResponse, error) {
	err := p.withScope(q.Volume, q.Scope, func(d *directory, r *os.Root) error {
		d.scopes.Lock()
		defer d.scopes.Unlock()
		if err := r.Remove(q.Scope); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return failure("delete scope", err)
		}
		if err := r.Remove(path.Join(limitsDir, q.Scope)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return failure("delete limit", err)
		}
		d.forget(q.Scope)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &volumepb.DeleteScopeResponse{}, nil
}

func (p *plugin) ListScopes(q *volumepb.VolumeRef, out grpc.ServerStreamingServer[volumepb.Scope]) error {
	d, err := p.volume(q.Volume)
	if err != nil {
		return err
	}
	r, err := d.root()
	if err != nil {
		return err
	}
	defer r.Close()
	top, err := r.Open(".")
	if err != nil {
		return failure("list scopes", err)
	}
	defer top.Close()
	for {
		entries, err := top.ReadDir(256)
		for _, e := range entries {
			if !e.IsDir() || !scopeName.MatchString(e.Name()) {
				continue
			}
			limit, err := readLimits(r, e.Name())
			if err != nil {
				return err
			}
			// Without usage: a list must not walk every tree.
			if err := out.Send(message(e.Name(), limit)); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return failure("list scopes", err)
		}
	}
}

func scopeDir(r *os.Root, scope string) (fs.FileInfo, error) {
	st, err := r.Lstat(scope)
	if err != nil {
		return nil, failure("scope", err)
	}
	if !st.IsDir() {
		return nil, status.Errorf(codes.FailedPrecondition, "scope %s is not a directory", scope)
	}
	return st, nil
}

func message(scope string, l limits) *volumepb.Scope {
	return &volumepb.Scope{Scope: scope, Path: scope, Limit: &volumepb.Limit{Bytes: l.Bytes}}
}

// scope describes a scope with the usage that can be had quickly.
func (d *directory) scope(ctx context.Context, r *os.Root, scope string) (*volumepb.Scope, error) {
	if _, err := scopeDir(r, scope); err != nil {
		return nil, err
	}
	limit, err := readLimits(r, scope)
	if err != nil {
		return nil, err
	}
	out := message(scope, limit)
	if u := d.measure(ctx, scope); u != nil {
		inodes := u.Files + u.Directories
		out.UsedBytes, out.UsedInodes = &u.Bytes, &inodes
		out.Exact, out.AsOfUnixMs = u.Exact, u.AsOfUnixMs
	}
	return out, nil
}
