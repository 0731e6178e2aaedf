package sim

import (
	"context"
	"slices"
	"time"

	"github.com/containerd/errdefs/pkg/errgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/internal/cluster"
)

// tunnel is one connection of a machine to a manager. What is said through it
// comes in order within a stream, or not at all; a cut tunnel is noticed only
// when nothing has come through for a while.
type tunnel struct {
	w *world
	p *process
	m *machine

	ctx  context.Context
	end  context.CancelFunc
	life string // of the machine's process
}

// keepalive is how long a silent tunnel lives, at most.
const keepalive = 35 * time.Second

// dial keeps a tunnel open from the machine to a manager, for the manager's life.
func (m *machine) dial(p *process) {
	w := m.w
	for p.ctx.Err() == nil {
		w.enter(m.name + " dials " + p.name)
		wait := w.between(300*time.Millisecond, 2*time.Second)
		if m.up && !p.dead && !m.cut[p.index].any() && !w.over {
			m.connect(p)
		}
		if sleep(p.ctx, wait) != nil {
			return
		}
	}
}

// connect serves one tunnel to its end.
func (m *machine) connect(p *process) {
	w := m.w
	t := &tunnel{w: w, p: p, m: m, life: m.incarnation}
	t.ctx, t.end = context.WithCancel(p.ctx)
	defer t.end()
	conn, err := grpc.NewClient("passthrough:///"+m.name, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(t.call), grpc.WithStreamInterceptor(t.open))
	if err != nil {
		panic(err) // the options are constants
	}
	defer conn.Close()
	m.tunnels, m.troubled = append(m.tunnels, t), time.Now()
	w.logf("%s connects to %s", m.name, p.name)
	p.Agents.Connected(t.ctx, &cluster.Peer{Role: cluster.RoleAgent, Name: m.name, Conn: conn, Done: t.ctx.Done()})
	w.enter(m.name + " has left " + p.name)
	m.troubled = time.Now()
	m.tunnels = slices.DeleteFunc(m.tunnels, func(o *tunnel) bool { return o == t })
}

var errBroken = status.Error(codes.Unavailable, "tunnel broken")

// trip lets a message travel. It fails when the message does not arrive.
func (t *tunnel) trip(ctx context.Context, what, detail string, silent func() bool) error {
	w := t.w
	delay := w.between(100*time.Microsecond, 20*time.Millisecond)
	lost := false
	if !w.calm {
		if w.chance(w.mood.late) {
			delay = w.between(0, 12*time.Second)
		}
		if w.chance(w.mood.lost) {
			w.logf("%s to %s breaks", t.m.name, t.p.name)
			t.end()
		}
		lost = w.chance(w.mood.hung)
	}
	if err := t.wait(ctx, delay); err != nil {
		return err
	}
	w.enter(what, detail)
	if lost || silent() || t.ctx.Err() != nil || t.p.dead {
		return t.wait(ctx, time.Hour) // until someone gives up
	}
	return nil
}

func (t *tunnel) wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	if t.ctx.Err() != nil {
		return errBroken
	}
	select {
	case <-t.ctx.Done():
		return errBroken
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	case <-timer.C:
		return nil
	}
}

func (t *tunnel) call(ctx context.Context, method string, req, reply any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
	w, what, detail := t.w, t.p.name+" calls "+t.m.name+" "+method, text(req)
	if w.enterFor(ctx, what, detail) != nil || t.p.dead {
		return errBroken
	}
	again := !w.calm && w.chance(w.mood.twice)
	if err := t.trip(ctx, "arrives: "+what, detail, func() bool { return t.m.cut[t.p.index].to }); err != nil {
		return err
	}
	if !t.m.up || t.m.incarnation != t.life {
		return errBroken
	}
	answer, err := t.m.handle(ctx, method, req.(proto.Message))
	w.logf("%s answers %s %v", t.m.name, text(answer), err)
	if again {
		t.repeat(method, req.(proto.Message), what, detail)
	}
	if err := t.trip(ctx, "answer: "+what, detail, func() bool { return t.m.cut[t.p.index].from }); err != nil {
		return err
	}
	if err != nil {
		return errgrpc.ToGRPC(err)
	}
	proto.Merge(reply.(proto.Message), answer)
	return nil
}

// repeat carries out a request once more, a little later.
func (t *tunnel) repeat(method string, req proto.Message, what, detail string) {
	w := t.w
	delay := w.between(0, 3*time.Second)
	w.play(func() {
		if t.wait(w.ctx, delay) != nil {
			return
		}
		w.enter("again: "+what, detail)
		if t.m.up && t.m.incarnation == t.life {
			answer, err := t.m.handle(t.ctx, method, req)
			w.logf("%s answers again %s %v", t.m.name, text(answer), err)
		}
	})
}

func text(m any) string {
	if p, ok := m.(proto.Message); ok && p != nil && p.ProtoReflect().IsValid() {
		b, _ := proto.MarshalOptions{Deterministic: true}.Marshal(p)
		return printable(b)
	}
	return ""
}

// printable shows what of a message is readable; unlike its String, it is the
// same in every process.
func printable(b []byte) string {
	const most = 160
	out := make([]byte, 0, most)
	for _, c := range b {
		if c < ' ' || c > '~' {
			c = '.'
		}
		if out = append(out, c); len(out) == most {
			break
		}
	}
	return string(out)
}
