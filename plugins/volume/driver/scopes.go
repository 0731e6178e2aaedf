package driver

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// undoTime limits the clean-up after a failure, which does not depend on the caller's context.
const undoTime = 20 * time.Second

func now() int64 { return time.Now().UnixMilli() }

// scope runs f for one scope. alone serializes it with other changes of the scope.
func (p *Plugin) scope(ctx context.Context, name, scope string, alone bool, f func(context.Context, *opened) error) error {
	return p.call(ctx, name, pb.Capability_SCOPE, func(ctx context.Context, o *opened) error {
		if !IsScope(scope) {
			return status.Errorf(codes.InvalidArgument, "scope: %q is not 32 lower-case hex digits", shown(scope))
		}
		if err := o.mount.plain(scope); err != nil {
			return err
		}
		if alone {
			give, err := o.scopes.take(ctx, scope)
			if err != nil {
				return err
			}
			defer give()
		}
		return f(ctx, o)
	})
}

// get calls GetScope and completes its result.
func (o *opened) get(ctx context.Context, scope string) (*pb.Scope, error) {
	s, err := o.GetScope(ctx, scope)
	if err != nil {
		return nil, err
	}
	complete(s, scope)
	return s, nil
}

func complete(s *pb.Scope, scope string) {
	s.Scope, s.Path = scope, scope
	if s.AsOfUnixMs == 0 && (s.UsedBytes != nil || s.UsedInodes != nil) {
		s.AsOfUnixMs = now()
	}
}

// check returns an error for limits that the volume cannot enforce.
func (o *opened) check(limit *pb.Limit) error {
	if limit == nil {
		return nil
	}
	for _, one := range []struct {
		name  string
		value *int64
		has   bool
	}{
		{"limit.bytes", limit.Bytes, o.has(pb.Capability_QUOTA_BYTES)},
		{"limit.inodes", limit.Inodes, o.has(pb.Capability_QUOTA_INODES)},
	} {
		switch {
		case one.value == nil:
		case *one.value < 0:
			return status.Errorf(codes.InvalidArgument, "%s: %d is negative", one.name, *one.value)
		case !one.has:
			return status.Errorf(codes.InvalidArgument, "%s: this volume does not support this limit", one.name)
		}
	}
	return nil
}

// some returns a non-nil message, so that volumes need not check for nil.
func some(l *pb.Limit) *pb.Limit {
	if l == nil {
		return &pb.Limit{}
	}
	return l
}

// CreateScope implements the contract.
func (p *Plugin) CreateScope(ctx context.Context, r *pb.ScopeRequest) (out *pb.Scope, err error) {
	scope := r.GetScope()
	err = p.scope(ctx, r.GetVolume(), scope, true, func(ctx context.Context, o *opened) error {
		if err := o.check(r.GetLimit()); err != nil {
			return err
		}
		out, err = o.get(ctx, scope)
		absent := is(err, codes.NotFound)
		if err != nil && !absent || err == nil && !o.mount.unfinished(scope) {
			return err
		}
		if err := o.mount.begin(scope); err != nil {
			return err
		}
		if err := o.CreateScope(ctx, scope, some(r.GetLimit())); err != nil {
			if absent { // an incomplete creation is undone
				o.undo(ctx, scope)
			}
			return err
		}
		o.mount.finish(scope)
		out, err = o.get(ctx, scope)
		return err
	})
	return out, err
}

func (o *opened) undo(ctx context.Context, scope string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	if err := o.DeleteScope(ctx, scope); err != nil && !is(err, codes.NotFound) {
		volume.Logger().Warn("remove a scope that could not be created", "scope", scope, "error", err.Error())
		return
	}
	o.mount.finish(scope)
}

// GetScope implements the contract.
func (p *Plugin) GetScope(ctx context.Context, r *pb.ScopeRef) (out *pb.Scope, err error) {
	err = p.scope(ctx, r.GetVolume(), r.GetScope(), false, func(ctx context.Context, o *opened) error {
		out, err = o.get(ctx, r.GetScope())
		return err
	})
	return out, err
}

// SetScopeLimit implements the contract.
func (p *Plugin) SetScopeLimit(ctx context.Context, r *pb.ScopeRequest) (out *pb.Scope, err error) {
	err = p.scope(ctx, r.GetVolume(), r.GetScope(), true, func(ctx context.Context, o *opened) error {
		if !o.limited() {
			return status.Errorf(codes.Unimplemented, "volume %s has no limits", r.GetVolume())
		}
		if err := o.check(r.GetLimit()); err != nil {
			return err
		}
		if err := o.SetScopeLimit(ctx, r.GetScope(), some(r.GetLimit())); err != nil {
			return err
		}
		out, err = o.get(ctx, r.GetScope())
		return err
	})
	return out, err
}

// DeleteScope implements the contract.
func (p *Plugin) DeleteScope(ctx context.Context, r *pb.ScopeRef) (*pb.DeleteScopeResponse, error) {
	err := p.scope(ctx, r.GetVolume(), r.GetScope(), true, func(ctx context.Context, o *opened) error {
		if err := o.DeleteScope(ctx, r.GetScope()); err != nil && !is(err, codes.NotFound) {
			return err
		}
		o.mount.finish(r.GetScope())
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &pb.DeleteScopeResponse{}, nil
}

// ListScopes implements the contract.
func (p *Plugin) ListScopes(r *pb.VolumeRef, out grpc.ServerStreamingServer[pb.Scope]) error {
	return p.call(out.Context(), r.GetVolume(), pb.Capability_LIST_SCOPES, func(ctx context.Context, o *opened) error {
		for s, err := range o.Volume.(Lister).ListScopes(ctx) {
			if err != nil {
				return err
			}
			if !IsScope(s.GetScope()) {
				continue // created by others on the same product
			}
			complete(s, s.GetScope())
			if err := out.Send(s); err != nil {
				return err
			}
		}
		return nil
	})
}

// MountPlan implements the contract.
func (p *Plugin) MountPlan(ctx context.Context, r *pb.ScopeRef) (out *pb.MountSpec, err error) {
	err = p.call(ctx, r.GetVolume(), pb.Capability_PER_SCOPE_MOUNT, func(ctx context.Context, o *opened) error {
		if !IsScope(r.GetScope()) {
			return status.Errorf(codes.InvalidArgument, "scope: %q is not 32 lower-case hex digits", shown(r.GetScope()))
		}
		out, err = o.Volume.(Mounter).MountPlan(ctx, r.GetScope())
		return err
	})
	return out, err
}

// locks has one lock for each name that is locked or waited for.
type locks struct {
	mu   sync.Mutex
	held map[string]*lock
}

type lock struct {
	free  chan struct{} // contains a token while the lock is free
	users int
}

// take acquires the lock of a name. The caller must call give.
func (l *locks) take(ctx context.Context, name string) (give func(), err error) {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[string]*lock{}
	}
	k := l.held[name]
	if k == nil {
		k = &lock{free: make(chan struct{}, 1)}
		k.free <- struct{}{}
		l.held[name] = k
	}
	k.users++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if k.users--; k.users == 0 {
			delete(l.held, name)
		}
	}
	select {
	case <-k.free:
		return func() { k.free <- struct{}{}; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
