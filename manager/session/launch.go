package session

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionmount"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/session/agentcall"
	"github.com/berthhq/berth/manager/session/move"
	"github.com/berthhq/berth/manager/session/peers"
	"github.com/berthhq/berth/manager/session/secrets"
	"github.com/berthhq/berth/manager/store"
)

// prepare starts the containers if every agent has the image. Nothing can happen between the image
// and the start, so the session passes both states in one move.
func (s step) prepare(ctx context.Context) (bool, time.Duration, error) {
	for _, k := range s.sess.Edges.Kernels {
		if !s.Agents.HasImage(k.Edges.Agent.Name, s.sess.Edges.Image.Reference, s.sess.Edges.Image.Digest) {
			return true, 0, s.move(ctx, move.Move{To: lifecycle.Preparing, Phase: "prepare", Message: s.fetching(k)})
		}
	}
	if err := s.refreshMounts(ctx); err != nil {
		return false, 0, err
	}
	m := creating
	m.After = &move.Move{To: lifecycle.Prepared, Phase: "prepare", Message: imagePresent}
	return true, 0, s.move(ctx, m)
}

// refreshMounts makes the mounts of a session that is about to start agree with the current
// permissions.
func (s step) refreshMounts(ctx context.Context) error {
	if len(s.sess.Edges.Mounts) == 0 {
		return nil
	}
	if err := s.mounts.Check(ctx, s.epoch, sessionmount.SessionID(s.sess.ID)); err != nil {
		return err
	}
	mounts, err := s.sess.QueryMounts().WithVfolder(atVolume).All(ctx)
	if err != nil {
		return fmt.Errorf("read mounts: %w", err)
	}
	s.sess.Edges.Mounts = mounts
	return nil
}

// fetching says that an agent fetches the image, and how much of it.
func (s step) fetching(k *ent.Kernel) string {
	if missing := s.Agents.Missing(k.Edges.Agent.Name, s.sess.Edges.Image.Reference); missing != "" {
		return "fetching the image: " + missing
	}
	return "fetching the image"
}

// creating is the move before the agents are asked.
var creating = move.Move{To: lifecycle.Creating, Phase: "create", Message: "starting"}

const imagePresent = "image present"

// awaitImage starts the pulls, or joins running ones, and handles their results.
func (s step) awaitImage(ctx context.Context) (bool, time.Duration, error) {
	ready := true
	for _, k := range s.sess.Edges.Kernels {
		done, err := s.pulls.ensure(ctx, k.Edges.Agent.Name, s.sess)
		switch {
		case errdefs.IsNotFound(err), errdefs.IsInvalidArgument(err), errdefs.IsFailedPrecondition(err):
			return true, 0, s.giveUp(ctx, session.TerminationReasonImagePullFailed, "image", err.Error())
		case err != nil && agentcall.Unreachable(err):
			return false, retryAfter, nil // the deadline limits this
		case errdefs.IsResourceExhausted(err):
			return true, 0, s.unfit(ctx, err.Error(), k)
		case err != nil:
			return true, 0, s.tryAgain(ctx, session.TerminationReasonImagePullFailed, "image", err.Error(), k)
		}
		ready = ready && done
	}
	if !ready {
		return false, 0, nil
	}
	return true, 0, s.move(ctx, move.Move{To: lifecycle.Prepared, Phase: "prepare", Message: imagePresent})
}

// pulls are the images that are being fetched, each once per agent.
type pulls struct {
	s       *Service
	running sync.WaitGroup

	mu sync.Mutex
	m  map[string]*pull
}

type pull struct {
	done    bool
	err     error
	waiting map[uuid.UUID]bool // sessions
}

func newPulls(s *Service) *pulls { return &pulls{s: s, m: map[string]*pull{}} }

// ensure starts a pull unless one runs, and reports whether the agent has the image. Every session
// that waited for a pull gets its result once.
func (p *pulls) ensure(ctx context.Context, agent string, sess *ent.Session) (bool, error) {
	img := sess.Edges.Image
	if p.s.Agents.HasImage(agent, img.Reference, img.Digest) {
		return true, nil
	}
	key := agent + " " + img.Reference
	p.mu.Lock()
	defer p.mu.Unlock()
	if running, ok := p.m[key]; ok {
		if !running.done {
			running.waiting[sess.ID] = true
			return false, nil
		}
		if delete(running.waiting, sess.ID); len(running.waiting) == 0 {
			delete(p.m, key)
		}
		return running.err == nil, running.err
	}
	if _, err := p.s.Agents.RPC(agent); err != nil {
		return false, err
	}
	one := &pull{waiting: map[uuid.UUID]bool{sess.ID: true}}
	p.m[key] = one
	p.running.Go(func() {
		err := p.s.fetch(ctx, agent, img)
		p.mu.Lock()
		one.done, one.err = true, err
		waiting := store.IDs(one.waiting)
		p.mu.Unlock()
		for _, id := range waiting {
			p.s.queue.Add(id)
		}
		// A session that has ended in the meantime does not read the result.
		time.AfterFunc(passEvery, func() { p.forget(key, one) })
	})
	return false, nil
}

func (p *pulls) forget(key string, one *pull) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.m[key] == one {
		delete(p.m, key)
	}
}

func (s *Service) fetch(ctx context.Context, agent string, img *ent.Image) error {
	ctx, cancel := context.WithTimeout(ctx, lifecycle.Deadline(lifecycle.Preparing))
	defer cancel()
	request, err := s.Images.PullRequest(ctx, img)
	if err != nil {
		return err
	}
	if err := s.Agents.Pull(ctx, agent, request); err != nil {
		return fmt.Errorf("fetch image %s: %w", img.Name, err)
	}
	return nil
}

// create asks the agents to start the containers. It can be repeated: an agent answers with the
// state of a launch that it knows.
func (s step) create(ctx context.Context) (bool, time.Duration, error) {
	var steps []report.Step
	for _, k := range s.sess.Edges.Kernels {
		ob, seen := s.observed.Current(k)
		state := ob.KernelState
		if !seen || state.Phase == agentpb.KernelState_CREATING {
			rpc, err := s.Agents.RPC(k.Edges.Agent.Name)
			if err != nil {
				return false, retryAfter, nil
			}
			request, err := s.request(k)
			if err != nil {
				return false, 0, err
			}
			call, cancel := context.WithTimeout(ctx, agentcall.Timeout)
			s.requests.Store(k.ID, true)
			state, err = rpc.CreateKernel(call, request)
			s.requests.Delete(k.ID)
			cancel()
			if err = errgrpc.ToNative(err); err != nil && agentcall.Unreachable(err) {
				return false, retryAfter, nil
			}
			if errdefs.IsInvalidArgument(err) {
				return true, 0, s.giveUp(ctx, session.TerminationReasonStartFailed, "create", err.Error())
			}
			if errdefs.IsResourceExhausted(err) {
				return true, 0, s.unfit(ctx, err.Error(), k)
			}
			if err != nil {
				return true, 0, s.tryAgain(ctx, session.TerminationReasonStartFailed, "create", err.Error(), k)
			}
			s.report(ctx, *k.AgentID, k.ID, state)
		}
		steps = append(steps, toSteps(state.Steps)...)
		switch {
		case state.Phase == agentpb.KernelState_EXITED && state.StartedUnixMs == 0 && state.Reason == agentUnfit:
			return true, 0, s.unfit(ctx, state.Message, k)
		case state.Phase == agentpb.KernelState_EXITED && state.StartedUnixMs == 0 && state.Reason == refused:
			return true, 0, s.giveUp(ctx, session.TerminationReasonStartFailed, state.Reason, state.Message)
		case state.Phase == agentpb.KernelState_EXITED && state.StartedUnixMs == 0:
			return true, 0, s.tryAgain(ctx, session.TerminationReasonStartFailed, state.Reason, state.Message, k)
		case state.Phase == agentpb.KernelState_CREATING, state.Phase == agentpb.KernelState_UNKNOWN:
			s.kept.Put(s.sess, s.readAt)
			return false, startingAgain, s.says(ctx, state.Message)
		}
	}
	return true, 0, s.move(ctx, move.Move{To: lifecycle.Running, Phase: "create", Message: "running", Steps: steps})
}

// refused is the reason of a kernel whose agent refuses to start it, as in the agents' contract.
const refused = "refused"

// says shows in a session's message what its agent is waiting for.
func (s step) says(ctx context.Context, text string) error {
	if text == "" || text == s.sess.StatusMessage {
		return nil
	}
	n, err := s.Client.Session.Update().Where(session.ID(s.sess.ID), session.StatusEQ(s.sess.Status)).
		SetStatusMessage(text).AddVersion(1).Save(ctx)
	if err != nil {
		return fmt.Errorf("store the message of session %s: %w", s.sess.ID, err)
	}
	if n > 0 {
		s.changed(ctx, s.sess.ID)
	}
	return nil
}

func (s step) request(k *ent.Kernel) (r *agentpb.CreateKernelRequest, err error) {
	x, err := secrets.Open(s.Keys, s.sess)
	if err != nil {
		return nil, err
	}
	r = &agentpb.CreateKernelRequest{
		Epoch: s.epoch, KernelId: k.ID.String(), SessionId: s.sess.ID.String(), LaunchEpoch: k.LaunchEpoch,
		SessionName: s.sess.Name, Hostname: k.Hostname, Image: s.sess.Edges.Image.Reference,
		Environment: peers.Environment(s.sess, k, x.Environment), Command: s.sess.Command, BootstrapScript: x.BootstrapScript,
		ShmBytes: s.sess.ShmBytes, DiskBytes: s.sess.DiskBytes, ProjectId: s.sess.ProjectID.String(), UserId: s.sess.OwnerID.String(),
		Allocations: holds(k), AllowedNetworks: s.sess.Edges.ResourceGroup.AllowedNetworks,
	}
	for _, m := range s.sess.Edges.Mounts {
		if m.RevokedAt != nil {
			continue
		}
		f := m.Edges.Vfolder
		r.Mounts = append(r.Mounts, &agentpb.Mount{
			Volume: f.Edges.QuotaScope.Edges.Volume.Name, Path: f.Path,
			Subpath: m.Subpath, Target: m.Target, ReadOnly: m.ReadOnly,
			Own: f.OwnerID != nil && *f.OwnerID == s.sess.OwnerID,
		})
	}
	runAs(r, s.sess.Edges.Owner)
	r.Cluster = peers.Cluster(s.sess, x.Peers)
	r.Network, err = peers.Network(s.sess, k)
	return r, err
}

// holds returns the allocations of the present launch of a kernel.
func holds(k *ent.Kernel) (held []*agentpb.Allocation) {
	for _, a := range k.Edges.Allocations {
		if a.FreedAt == nil {
			held = append(held, &agentpb.Allocation{
				DeviceId: a.Edges.Device.DeviceID, Slot: a.Slot, Amount: resource.Format(a.Slot, a.Amount),
			})
		}
	}
	return held
}

// runAs sets the user that the container runs as to the ids of its owner. A missing group id
// defaults to the user id.
func runAs(r *agentpb.CreateKernelRequest, owner *ent.User) {
	if owner == nil || owner.ContainerUID == nil {
		return
	}
	r.HasUser, r.Uid, r.Gid = true, uint32(*owner.ContainerUID), uint32(*owner.ContainerUID)
	if owner.ContainerGid != nil {
		r.Gid = uint32(*owner.ContainerGid)
	}
	for _, g := range owner.ContainerGids {
		r.Gids = append(r.Gids, uint32(g))
	}
}

func toSteps(list []*agentpb.Step) []report.Step {
	var out []report.Step
	for _, st := range list {
		out = append(out, report.Step{
			Name: st.Name, StartedAt: millis(st.StartedUnixMs), EndedAt: millis(st.EndedUnixMs), OK: st.Ok, Message: st.Message,
		})
	}
	return out
}
