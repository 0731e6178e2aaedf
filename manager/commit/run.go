package commit

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/task"
)

// longest is the time limit of one attempt. The push token is valid for as long.
const longest = 2 * time.Hour

// runner runs the tasks.
type runner struct{ *Service }

// Run implements task.Handler. An attempt starts from the beginning, and the registry keeps what earlier attempts
// have sent. The image becomes visible with its row, after the registry has all of it.
func (r runner) Run(ctx context.Context, p *task.Progress, input []byte) error {
	var w work
	if err := json.Unmarshal(input, &w); err != nil {
		return fmt.Errorf("read input: %w", err)
	}
	ctx, cancel := context.WithTimeout(viewer.SystemContext(ctx), longest)
	defer cancel()
	sess, err := r.session(ctx, w.Session)
	if ent.IsNotFound(err) {
		return problem.Precondition("the session no longer exists")
	}
	if err != nil {
		return fmt.Errorf("read session: %w", err)
	}
	if err := running(sess); err != nil {
		return err
	}
	reg, err := r.Images.OwnRegistry(ctx)
	if err != nil {
		return err
	}
	done, err := r.ask(ctx, p, sess, reg, w)
	if err != nil {
		return err
	}
	base := sess.Edges.Image
	if _, err := r.Publish(ctx, p, reg, w.Target, Made{
		Digest: done.Digest, Session: sess.ID, Base: base.Reference, Adds: base.AddedBytes + done.LayerBytes,
	}, nil); err != nil {
		return err
	}
	if done.LayerBytes == 0 {
		p.Remark("The session has changed nothing since it was started from its image.")
	}
	return nil
}

// ask asks the agent of the main kernel for the image and waits for it.
func (r runner) ask(ctx context.Context, p *task.Progress, sess *ent.Session, reg *ent.Registry, w work) (*agentpb.CommitProgress, error) {
	if len(sess.Edges.Kernels) == 0 || sess.Edges.Kernels[0].Edges.Agent == nil {
		return nil, problem.Unavailable("session %s has no container", sess.Name)
	}
	k := sess.Edges.Kernels[0]
	to, err := r.Upload(ctx, p, reg, w.Target, sess.Edges.Image.Reference)
	if err != nil {
		return nil, err
	}
	rpc, err := r.Agents.RPC(k.Edges.Agent.Name)
	if err != nil {
		return nil, err
	}
	stream, err := rpc.CommitKernel(ctx, &agentpb.CommitKernelRequest{
		Epoch: p.Epoch(), KernelId: k.ID.String(), LaunchEpoch: k.LaunchEpoch, Repository: to.Repository,
		PlainHttp: to.PlainHTTP, Username: to.Username, Password: to.Password, MountFrom: to.MountFrom, MaxBytes: to.MaxBytes, Indexed: to.Indexed,
	})
	if err != nil {
		return nil, Failure(k.Edges.Agent.Name, err)
	}
	return follow(ctx, p, k.Edges.Agent.Name, stream)
}

// follow stores the progress and returns the last message.
func follow(ctx context.Context, p *task.Progress, agent string, stream interface {
	Recv() (*agentpb.CommitProgress, error)
}) (*agentpb.CommitProgress, error) {
	var saved time.Time
	for {
		m, err := stream.Recv()
		if err != nil {
			return nil, Failure(agent, err)
		}
		if m.Done {
			return m, nil
		}
		if time.Since(saved) < time.Second {
			continue
		}
		saved = time.Now()
		if err := p.Save(ctx, struct{}{}, share(m), steps); err != nil {
			return nil, err
		}
	}
}

// steps is the total of the progress: the phases of an agent have different amounts of bytes.
const steps = 100

// share converts the progress of a phase to one of the whole.
func share(m *agentpb.CommitProgress) int64 {
	part := map[string][2]int64{"copying": {0, 30}, "compressing": {30, 60}, "pushing": {60, 99}}[m.Phase]
	if m.TotalBytes <= 0 {
		return part[0]
	}
	return part[0] + (part[1]-part[0])*min(m.DoneBytes, m.TotalBytes)/m.TotalBytes
}
