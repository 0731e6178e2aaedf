package session

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/leader"
	"github.com/berthhq/berth/manager/session/agentcall"
	"github.com/berthhq/berth/manager/session/move"
	"github.com/berthhq/berth/manager/store"
)

// grace is the time between SIGTERM and SIGKILL of a container.
const grace = 10 * time.Second

// killTime is the part of a terminating session's time that is reserved for SIGKILL and clean-up.
const killTime = 20 * time.Second

// completed is the reason of a kernel that ended by itself.
const completed = "completed"

// notFound is the reason of a kernel that its agent does not know.
const notFound = "not-found"

// exited reports whether a kernel's container has ended, according to the latest report.
func (s step) exited(k *ent.Kernel) bool {
	ob, ok := s.observed.Current(k)
	return ok && ob.Phase == agentpb.KernelState_EXITED
}

// awaitEnd checks whether the containers of a running session have ended. The end of one container
// ends the session, except for the successful end of a container of a batch session other than the
// main one.
func (s step) awaitEnd(ctx context.Context) (bool, time.Duration, error) {
	ended, decisive := 0, false
	for _, k := range s.sess.Edges.Kernels {
		if s.exited(k) {
			ended++
			decisive = decisive || k.Role == kernel.RoleMain || s.sess.Type != session.TypeBatch || s.failed(k)
		}
	}
	switch {
	case ended == 0:
		return false, 0, s.showUnreadable(ctx)
	case ended == len(s.sess.Edges.Kernels):
		return true, 0, s.finish(ctx, "")
	case !decisive:
		return false, 0, nil
	}
	why := s.verdict()
	return true, 0, s.move(ctx, move.Move{To: lifecycle.Terminating, Phase: "run", Reason: &why.reason,
		Code: string(why.reason), Message: why.text, Result: sessionevent.ResultInfo})
}

// failed reports whether a kernel's container ended without completing its work.
func (s step) failed(k *ent.Kernel) bool {
	ob, ok := s.observed.Current(k)
	return ok && ob.Phase == agentpb.KernelState_EXITED && (ob.ExitCode != 0 || ob.Reason != completed)
}

// terminate asks the agents to end the containers, and waits for the last one.
func (s step) terminate(ctx context.Context) (bool, time.Duration, error) {
	if !s.allEnded() {
		s.stopKernels(ctx, s.graceLeft())
		if !s.allEnded() {
			return false, retryAfter, nil
		}
	}
	return true, 0, s.finish(ctx, "")
}

// allEnded reports whether all containers that the session waits for have ended. A session that is
// given up because its agent is lost does not wait for the containers there.
func (s step) allEnded() bool {
	given := s.sess.TerminationReason != nil && *s.sess.TerminationReason == session.TerminationReasonAgentLost
	for _, k := range s.sess.Edges.Kernels {
		if a := k.Edges.Agent; a != nil && !s.exited(k) && !(given && a.Status != agent.StatusAlive) {
			return false
		}
	}
	return true
}

// graceLeft returns the time before SIGKILL, which leaves killTime before the deadline.
func (s step) graceLeft() time.Duration {
	left := grace
	if d := s.sess.DeadlineAt; d != nil {
		left = min(left, d.Sub(clock.Now())-killTime)
	}
	return max(left, time.Millisecond)
}

// stopKernels requests the end of every container. The next pass asks an agent that could not be
// reached again.
func (s step) stopKernels(ctx context.Context, grace time.Duration) {
	for _, k := range s.sess.Edges.Kernels {
		if k.Edges.Agent == nil || s.exited(k) {
			continue
		}
		state, err := s.terminateKernel(ctx, k.Edges.Agent.Name, k.ID, grace)
		if err != nil {
			if !agentcall.Unreachable(err) {
				s.Logger.Warn("end container", "session", s.sess.ID, "kernel", k.ID, "error", err)
			}
			continue
		}
		if state.Reason == notFound { // the agent knows no launch of a kernel without a record
			state.LaunchEpoch = k.LaunchEpoch
		}
		s.report(ctx, *k.AgentID, k.ID, state)
	}
}

func (s step) terminateKernel(ctx context.Context, agent string, id uuid.UUID, grace time.Duration) (*agentpb.KernelState, error) {
	rpc, err := s.Agents.RPC(agent)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, agentcall.Timeout)
	defer cancel()
	state, err := rpc.TerminateKernel(ctx, &agentpb.TerminateKernelRequest{
		Epoch: s.epoch, KernelId: id.String(), GraceMs: grace.Milliseconds(), Reason: string(s.sess.Status),
	})
	return state, errgrpc.ToNative(err)
}

// verdict returns the status and the reason of a session's end, based on its main container.
type verdict struct {
	reason  session.TerminationReason
	outcome session.Result
	exit    *int
	text    string
}

var reasons = map[string]session.TerminationReason{
	"oom-killed":    session.TerminationReasonOutOfMemory,
	"disk-exceeded": session.TerminationReasonDiskExceeded,
	"start-failed":  session.TerminationReasonStartFailed,
	refused:         session.TerminationReasonStartFailed,
	agentUnfit:      session.TerminationReasonStartFailed,
	notFound:        session.TerminationReasonKernelLost,
	"lost":          session.TerminationReasonKernelLost,
}

func (s step) verdict() verdict {
	v := verdict{reason: session.TerminationReasonKernelLost, outcome: session.ResultFailure, text: "its container is gone"}
	if k := s.decider(); k != nil {
		v = s.end(k)
	}
	if r := s.sess.TerminationReason; r != nil { // requested before
		v.reason, v.text = *r, s.sess.StatusMessage
		v.outcome = session.ResultFailure
		switch {
		case *r == session.TerminationReasonCompleted:
			v.outcome = session.ResultSuccess
		case *r == session.TerminationReasonUserRequested, s.sess.Type == session.TypeInteractive && made[*r]:
			v.outcome = session.ResultUndefined
		}
	}
	return v
}

// made are the reasons with which the platform ends sessions that work. An interactive session with
// one of them has not failed.
var made = map[session.TerminationReason]bool{
	session.TerminationReasonIdle: true, session.TerminationReasonLifetime: true,
	session.TerminationReasonPreempted: true, session.TerminationReasonDrained: true,
}

// decider returns the kernel whose end determines the result of the session: the main one or, while
// it runs, the first one that failed.
func (s step) decider() (first *ent.Kernel) {
	for _, k := range s.sess.Edges.Kernels {
		switch {
		case !s.exited(k):
		case k.Role == kernel.RoleMain:
			return k
		case first == nil || s.failed(k) && !s.failed(first):
			first = k
		}
	}
	return first
}

// end describes the end of a kernel.
func (s step) end(k *ent.Kernel) verdict {
	ob, _ := s.observed.Current(k)
	code := int(ob.ExitCode)
	v := verdict{reason: session.TerminationReasonFailed, outcome: session.ResultFailure, exit: &code, text: fmt.Sprintf("exit code %d", code)}
	if r, ok := reasons[ob.Reason]; ok {
		v.reason, v.text = r, ob.Message
	} else if code == 0 {
		v.reason, v.outcome = session.TerminationReasonCompleted, session.ResultSuccess
	} else if ob.Message != "" { // a possible cause
		v.text += "; " + ob.Message
	}
	if k.Role != kernel.RoleMain {
		v.text = strings.TrimSuffix("container "+k.Hostname+" ended first: "+v.text, ": ")
	}
	return v
}

// endedItself reports whether the main container ended before its end was requested.
func (s step) endedItself() bool {
	for _, k := range s.sess.Edges.Kernels {
		if ob, ok := s.observed.Current(k); k.Role == kernel.RoleMain && ok && ob.Phase == agentpb.KernelState_EXITED {
			return ob.Reason == completed || reasons[ob.Reason] == session.TerminationReasonOutOfMemory
		}
	}
	return false
}

// finish records the end and frees all resources, or puts a session that is to start again back
// into the queue.
func (s step) finish(ctx context.Context, note string) error {
	if s.sess.Status == lifecycle.Terminating && s.sess.RetryAt != nil {
		if !s.endedItself() {
			return s.startAgain(ctx)
		}
		s.sess.TerminationReason = nil
	}
	v := s.verdict()
	if note != "" {
		v.text = note
	}
	var kernels []uuid.UUID
	for _, k := range s.sess.Edges.Kernels {
		kernels = append(kernels, k.ID)
	}
	s.saveStats(ctx, kernels)
	m := move.Move{To: lifecycle.Terminated, Phase: "terminate", Code: string(v.reason), Message: v.text,
		Reason: &v.reason, Outcome: v.outcome, ExitCode: v.exit, Result: sessionevent.ResultSuccess}
	if s.sess.StartedAt == nil && s.sess.Status == lifecycle.Terminating {
		m.To, m.ExitCode = lifecycle.Cancelled, nil
	}
	if v.reason == session.TerminationReasonAgentLost && s.sess.Status == lifecycle.Terminating {
		m.To, m.ExitCode, m.Result = lifecycle.Error, nil, sessionevent.ResultFailure
	}
	if err := s.move(ctx, m); err != nil {
		return err
	}
	for _, k := range s.sess.Edges.Kernels {
		if k.AgentID != nil && s.exited(k) {
			s.observed.Drop(k.ID, *k.AgentID)
		}
	}
	return nil
}

const (
	// cleanUpTime limits how long a session waits for its machine to be clean after the end of its
	// processes: many sessions that end at once keep a small machine busy for a minute.
	cleanUpTime = 3 * time.Minute
	// cleanUpPause is the time between two checks of a machine that cleans up.
	cleanUpPause = 5 * time.Second
)

// cleaningUp reports whether a terminating session waits only for agents, all of them reachable, to
// remove mounts, networks and containers of processes that have ended recently.
func (s step) cleaningUp() bool {
	waiting := false
	for _, k := range s.sess.Edges.Kernels {
		if k.Edges.Agent == nil || s.exited(k) {
			continue
		}
		ob, ok := s.observed.Current(k)
		if !ok || ob.ExitedUnixMs == 0 || clock.Now().Sub(millis(ob.ExitedUnixMs)) > cleanUpTime {
			return false
		}
		if _, err := s.Agents.RPC(k.Edges.Agent.Name); err != nil {
			return false
		}
		waiting = true
	}
	return waiting
}

// extend moves the deadline of a terminating session by a little. The message stays, because it
// explains why the session ends.
func (s step) extend(ctx context.Context) error {
	until := clock.Now().Add(cleanUpPause)
	err := store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		if err := leader.Fence(ctx, tx, s.epoch); err != nil {
			return err
		}
		return tx.Session.Update().Where(session.ID(s.sess.ID), session.StatusEQ(lifecycle.Terminating)).
			SetDeadlineAt(until).AddVersion(1).Exec(ctx)
	})
	if err != nil {
		return fmt.Errorf("wait for the clean-up after session %s: %w", s.sess.ID, err)
	}
	s.sess.DeadlineAt = &until
	return nil
}
