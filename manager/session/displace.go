package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/resourcegroup"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/lifecycle"
)

// displacing is the move with which the platform ends what runs. When it is to
// start again, it goes back to pending once its containers have ended, and that is
// no failure of its own.
func displacing(reason session.TerminationReason, anew bool, text string) move {
	m := move{to: lifecycle.Terminating, phase: "run", result: sessionevent.ResultInfo, code: string(reason), message: text, reason: &reason}
	if anew {
		now := clock.Now()
		m.retryAt = &now
	}
	return m
}

// displace takes a session off agents where it cannot stay: those that are lost,
// as its group says, and those that have been drained for long enough.
func (s step) displace(ctx context.Context) (bool, error) {
	if s.sess.Status != lifecycle.Running && !s.starting() {
		return false, nil
	}
	if lost := s.on(func(a *ent.Agent) bool { return a.Status != agent.StatusAlive }); len(lost) > 0 {
		if s.starting() {
			return true, s.tryAgain(ctx, session.TerminationReasonAgentLost, "agent_lost",
				names(lost)+" was lost before the session started", lost...)
		}
		if moved, err := s.lose(ctx); moved || err != nil {
			return moved, err
		}
	}
	due := s.on(func(a *ent.Agent) bool { return a.DrainDeadline != nil && !a.DrainDeadline.After(clock.Now()) })
	if len(due) == 0 {
		return false, nil
	}
	anew := *due[0].Edges.Agent.DrainAction == agent.DrainActionReschedule
	m := displacing(session.TerminationReasonDrained, anew, drainedText(due[0].Edges.Agent, anew))
	if s.starting() && anew {
		s.stopKernels(ctx, time.Millisecond)
		m = move{to: lifecycle.Pending, result: sessionevent.ResultInfo, code: m.code, message: m.message, avoid: agentsOf(due)}
	}
	m.phase = phaseOf(s.sess.Status)
	return true, s.move(ctx, m)
}

func drainedText(a *ent.Agent, anew bool) string {
	text := "agent " + a.Name + " was drained"
	if a.CordonReason != "" {
		text += " (" + a.CordonReason + ")"
	}
	if anew {
		text += "; the session starts anew elsewhere"
	}
	return text
}

// lose treats a running session whose agent has been lost for as long as its
// group waits, or was declared gone. All of its kernels go the same way.
func (s step) lose(ctx context.Context) (bool, error) {
	g := s.sess.Edges.ResourceGroup
	lostAfter := time.Duration(g.LostAfter) * time.Second
	gone := s.on(func(a *ent.Agent) bool { return a.Status == agent.StatusTerminated })
	text := names(gone) + " is gone for good"
	if len(gone) == 0 && g.LostPolicy != resourcegroup.LostPolicyWait && !s.Agents.Disrupted(g.ID) {
		gone = s.on(func(a *ent.Agent) bool {
			return a.Status == agent.StatusLost && a.LostAt != nil && !clock.Now().Before(a.LostAt.Add(lostAfter))
		})
		text = fmt.Sprintf("%s has been lost for %s", names(gone), lostAfter)
	}
	if len(gone) == 0 {
		return false, nil
	}
	anew := g.LostPolicy == resourcegroup.LostPolicyReschedule
	if anew {
		text += "; the session starts anew elsewhere"
	}
	return true, s.move(ctx, displacing(session.TerminationReasonAgentLost, anew, text))
}

// startAnew ends the present run and lets the session wait for another place.
func (s step) startAnew(ctx context.Context) error {
	reason := *s.sess.TerminationReason
	left := s.on(func(a *ent.Agent) bool {
		return a.Status != agent.StatusAlive || reason == session.TerminationReasonDrained && a.DrainAction != nil
	})
	return s.move(ctx, move{to: lifecycle.Pending, phase: "terminate", result: sessionevent.ResultInfo,
		code: string(reason), message: s.sess.StatusMessage, avoid: agentsOf(left)})
}

// starting reports whether the session is between its placement and its run.
func (s step) starting() bool {
	return slices.Contains([]lifecycle.Status{lifecycle.Scheduled, lifecycle.Preparing, lifecycle.Prepared, lifecycle.Creating}, s.sess.Status)
}

// on lists the kernels on agents for which is holds.
func (s step) on(is func(*ent.Agent) bool) []*ent.Kernel {
	var out []*ent.Kernel
	for _, k := range s.sess.Edges.Kernels {
		if a := k.Edges.Agent; a != nil && is(a) {
			out = append(out, k)
		}
	}
	return out
}

// names tells the agents of kernels to people.
func names(kernels []*ent.Kernel) string {
	var all []string
	for _, k := range kernels {
		if name := k.Edges.Agent.Name; !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return "agent " + strings.Join(all, ", ")
}
