package main

import (
	"cmp"
	"context"
	"iter"
	"path"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// CreateScope implements driver.Volume.
func (n *namespace) CreateScope(ctx context.Context, scope string, limit *pb.Limit) error {
	if err := possible(limit); err != nil {
		return err
	}
	_, err := n.settled(ctx, scope)
	switch {
	case err == nil:
		err = n.resize(ctx, scope, limit)
	case absent(err):
		if d, err := n.OpenTree(scope); err == nil {
			d.Close()
			return status.Errorf(codes.FailedPrecondition, "%s is a plain directory, and only a share has limits", scope)
		}
		err = n.make(ctx, scope, limit)
	}
	if err == nil {
		err = n.appear(ctx, scope)
	}
	if err != nil {
		return err
	}
	return n.MakeScope(scope) // finds the directory and sets its mode
}

func absent(err error) bool { return status.Code(driver.Error("", err)) == codes.NotFound }

// settled returns the share of an existing directory. If there is none, a task may be creating it,
// because the plugin was killed or another proxy requested it; settled waits for that task.
func (n *namespace) settled(ctx context.Context, scope string) (*share, error) {
	s, err := n.share(ctx, scope)
	if !absent(err) {
		return s, err
	}
	d, derr := n.OpenTree(scope)
	if derr != nil {
		return nil, derr
	}
	if err := d.Close(); err != nil {
		return nil, err
	}
	id, terr := n.making(ctx, nameOf(scope))
	if terr != nil || id == "" {
		return nil, cmp.Or(terr, err)
	}
	if err := n.wait(ctx, id); err != nil {
		return nil, err
	}
	return n.share(ctx, scope)
}

// GetScope implements driver.Volume.
func (n *namespace) GetScope(ctx context.Context, scope string) (*pb.Scope, error) {
	s, err := n.share(ctx, scope)
	if err != nil {
		return nil, err
	}
	out := &pb.Scope{Limit: &pb.Limit{}}
	s.fill(out)
	return out, nil
}

// SetScopeLimit implements driver.Volume.
func (n *namespace) SetScopeLimit(ctx context.Context, scope string, limit *pb.Limit) error {
	if err := possible(limit); err != nil {
		return err
	}
	if _, err := n.share(ctx, scope); err != nil {
		return err
	}
	return n.resize(ctx, scope, limit)
}

// possible checks that a share can have the limit: zero would mean unlimited.
func possible(limit *pb.Limit) error {
	if limit.Bytes != nil && *limit.Bytes == 0 {
		return status.Error(codes.InvalidArgument, "limit.bytes: Hammerspace does not support a limit of zero")
	}
	return nil
}

// DeleteScope implements driver.Volume. The Anvil would remove a share with its contents, so the
// scope must be verified to be empty first.
func (n *namespace) DeleteScope(ctx context.Context, scope string) error {
	if err := n.EmptyScope(scope); err != nil {
		return err
	}
	_, err := n.settled(ctx, scope)
	if absent(err) {
		return n.RemoveScope(scope)
	}
	if err != nil {
		return err
	}
	return n.unmake(ctx, scope)
}

// ListScopes implements driver.Lister. It returns the shares directly below the mount. The Anvil
// returns all of its shares in one response.
func (n *namespace) ListScopes(ctx context.Context) iter.Seq2[*pb.Scope, error] {
	return func(yield func(*pb.Scope, error) bool) {
		var all []share
		if err := n.client.Get(ctx, shares, nil, &all); err != nil {
			yield(nil, err)
			return
		}
		for _, s := range all {
			scope, ours := strings.CutPrefix(s.Name, nameOf(""))
			if !ours || !driver.IsScope(scope) || path.Clean(s.Path) != n.inside(scope) || s.State == removed {
				continue
			}
			out := &pb.Scope{Scope: scope, Limit: &pb.Limit{}}
			s.fill(out)
			if !yield(out, nil) {
				return
			}
		}
	}
}

// MountPlan implements driver.Mounter.
func (n *namespace) MountPlan(ctx context.Context, scope string) (*pb.MountSpec, error) {
	s, err := n.share(ctx, scope)
	if err != nil {
		return nil, err
	}
	return &pb.MountSpec{FsType: "nfs", Source: n.options.Portal + ":" + s.Path, Options: []string{"vers=4.2"}}, nil
}
