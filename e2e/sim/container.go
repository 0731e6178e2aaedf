package sim

import (
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/agent/agentpb"
)

// container is the actual state of the container of a launch.
type container int

const (
	making container = iota + 1
	running
	ended
	gone
)

// box is one launch of a kernel on a machine: its record, and its container.
type box struct {
	m     *machine
	req   *agentpb.CreateKernelRequest
	state *agentpb.KernelState // the recorded state

	container container
	code      int
	deadline  *time.Time // deadline of the request to end the kernel
	reason    string
	cleaning  bool

	// Behavior of the container.
	takes       time.Duration // time until it has started
	fails       bool          // the start fails
	lasts       time.Duration // 0: until it is ended
	exit        int
	ignoresTerm bool // ignores SIGTERM
	stuck       time.Duration
	cleanup     time.Duration
}

// newBox draws the behavior of a launch; its command can determine it.
func newBox(m *machine, r *agentpb.CreateKernelRequest) *box {
	w := m.w
	b := &box{m: m, req: proto.Clone(r).(*agentpb.CreateKernelRequest), state: &agentpb.KernelState{
		KernelId: r.KernelId, SessionId: r.SessionId, LaunchEpoch: r.LaunchEpoch, Phase: agentpb.KernelState_CREATING,
		Allocations: r.Allocations,
	}}
	b.takes = w.between(50*time.Millisecond, 2*time.Second)
	b.cleanup = w.between(5*time.Millisecond, 500*time.Millisecond)
	b.ignoresTerm = w.chance(0.1)
	if !w.calm {
		b.fails = w.chance(w.mood.start)
		if w.chance(0.05) {
			b.takes = w.between(2*time.Second, time.Minute)
		}
		if w.chance(0.03) {
			b.stuck = w.between(time.Second, 20*time.Second)
		}
	}
	if len(r.Command) == 3 { // work, for how many milliseconds, exit code
		ms, _ := strconv.Atoi(r.Command[1])
		b.lasts = time.Duration(ms) * time.Millisecond
		b.exit, _ = strconv.Atoi(r.Command[2])
	}
	return b
}

// after calls f later, unless the box has been replaced by then.
func (b *box) after(d time.Duration, what string, f func()) {
	w := b.m.w
	w.play(func() {
		if sleep(w.ctx, d) == nil {
			w.enter(b.m.name+" "+what, b.req.KernelId, strconv.FormatInt(b.req.LaunchEpoch, 10))
			f()
		}
	})
}

func (b *box) make() {
	b.container = making
	b.m.publish(b.event())
	life := b.m.incarnation
	b.after(b.takes, "starts", func() {
		if b.container != making || !b.m.up || b.m.incarnation != life {
			return
		}
		if b.fails {
			b.container = gone
			b.finish("start-failed", 1, "the start fails at random")
			return
		}
		b.container = running
		b.change(agentpb.KernelState_RUNNING)
		if b.lasts > 0 {
			b.after(b.lasts, "has done", func() { b.exits(b.exit) })
		}
	})
}

// exits ends the container, even if the agent does not notice.
func (b *box) exits(code int) {
	if b.container != running {
		return
	}
	b.container, b.code = ended, code
	if b.m.up {
		b.finish(b.why())
	}
}

func (b *box) why() (reason string, code int, message string) {
	switch {
	case b.deadline != nil:
		return "terminated", b.code, b.reason
	case b.container == gone:
		return "lost", 137, "container did not exist when the agent started"
	}
	return "completed", b.code, ""
}

// finish frees everything and then reports that the kernel has ended.
func (b *box) finish(reason string, code int, message string) {
	if b.cleaning {
		return
	}
	b.cleaning = true
	life := b.m.incarnation
	b.after(b.cleanup, "is cleaned up", func() {
		b.cleaning = false
		if !b.m.up || b.m.incarnation != life || b.state.Phase == agentpb.KernelState_EXITED {
			return
		}
		b.container = gone
		b.state.ExitCode, b.state.Reason, b.state.Message = int32(code), reason, message
		b.state.ExitedUnixMs = time.Now().UnixMilli()
		b.change(agentpb.KernelState_EXITED)
	})
}

// stop requests the end; a later request counts only if it is more urgent.
func (b *box) stop(grace time.Duration, why string) {
	deadline := time.Now().Add(grace)
	if b.deadline != nil && !deadline.Before(*b.deadline) || b.state.Phase == agentpb.KernelState_EXITED {
		return
	}
	if b.deadline == nil {
		b.reason = why
	}
	b.deadline = &deadline
	b.pursue()
}

// pursue carries out the request to end the kernel.
func (b *box) pursue() {
	w := b.m.w
	switch b.container {
	case making:
		b.container = gone
		b.finish("terminated", 137, b.reason)
	case running:
		if b.state.Phase < agentpb.KernelState_STOPPING {
			b.change(agentpb.KernelState_STOPPING)
			if !b.ignoresTerm {
				b.after(w.between(10*time.Millisecond, 4*time.Second), "heeds SIGTERM", func() { b.exits(143) })
			}
		}
		life := b.m.incarnation
		b.after(max(time.Until(*b.deadline), 0)+b.stuck+w.between(time.Millisecond, 200*time.Millisecond), "is killed", func() {
			if b.m.up && b.m.incarnation == life {
				b.exits(137)
			}
		})
	}
}

// recover continues the operations of an earlier process of the agent.
func (b *box) recover() {
	b.cleaning = false
	switch {
	case b.state.Phase == agentpb.KernelState_EXITED:
	case b.container == gone || b.container == ended:
		b.finish(b.why())
	case b.container == making && b.deadline != nil:
		b.container = gone
		b.finish("terminated", 137, b.reason)
	case b.container == making:
		b.make()
	case b.deadline != nil:
		b.pursue()
	}
}

func (b *box) change(phase agentpb.KernelState_Phase) {
	if phase == agentpb.KernelState_RUNNING {
		b.state.StartedUnixMs = time.Now().UnixMilli()
	}
	b.state.Phase = phase
	b.m.publish(b.event())
}

func (b *box) event() *agentpb.Event {
	return &agentpb.Event{Event: &agentpb.Event_Kernel{Kernel: proto.Clone(b.state).(*agentpb.KernelState)}}
}

// live reports whether the container can be running.
func (b *box) live() bool { return b.container == making || b.container == running }
