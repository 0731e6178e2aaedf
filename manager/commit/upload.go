package commit

import (
	"context"
	"fmt"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/registry/pushtoken"
	"github.com/berthhq/berth/manager/task"
)

// Upload is what an agent needs to send an image to the registry.
type Upload struct {
	Repository string // with the host
	PlainHTTP  bool
	Username   string
	Password   string
	MountFrom  string // repository whose layers it can use; empty: none
	MaxBytes   int64  // 0: no limit
	Indexed    bool   // layers get an index of their files, so that sessions can start before they are complete
}

// Upload permits an agent to send an image, unless a limit forbids it. base is the reference of the
// session's image.
func (s *Service) Upload(ctx context.Context, p *task.Progress, reg *ent.Registry, t Target, base string) (*Upload, error) {
	var room *pushtoken.Quota
	err := p.InTx(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
		room, err = s.Room(ctx, tx, reg.Host, t, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := &Upload{Repository: reg.Host + "/" + t.Repository, PlainHTTP: reg.PlainHTTP, Username: s.Images.PushUser(), Indexed: reg.LazyStart}
	if room != nil {
		// Room leaves at least one byte. 0 would mean to the agent that there is no limit.
		if out.MaxBytes = room.Max - room.Used; out.MaxBytes <= 0 {
			return nil, problem.Exhausted("%s has no byte left of at most %d for images", room.Of, room.Max).WithField("name").WithLimit(fmt.Sprint(room.Max))
		}
	}
	out.Password, out.MountFrom, err = s.Images.PushToken(t.Repository, base, room)
	return out, err
}

// Failure converts an agent's error. Its text names the limit or the file that caused it.
func Failure(agent string, err error) error {
	err = errgrpc.ToNative(err)
	switch {
	case errdefs.IsFailedPrecondition(err), errdefs.IsNotFound(err), errdefs.IsInvalidArgument(err), errdefs.IsNotImplemented(err):
		return problem.Precondition("agent %s: %v", agent, err)
	case errdefs.IsResourceExhausted(err):
		return problem.Exhausted("agent %s: %v", agent, err)
	}
	return problem.Unavailable("agent %s: %v", agent, err).Because(err)
}
