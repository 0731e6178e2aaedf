package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/cluster"
)

// tunnel is one connection of a machine to a manager. Messages of a stream arrive in order, or not
// at all. A cut tunnel is noticed only when nothing has arrived for a while.
type tunnel struct {
	w *world
	p *process
	m *machine

	ctx  context.Context
	end  context.CancelFunc
	life string // ID of the agent's process
}

// keepalive is the longest life of a tunnel without messages.
const keepalive = 35 * time.Second

// dial keeps a tunnel from the machine to a manager's process open until the process ends.
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

// trip delays a message. It returns an error if the message does not arrive.
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
		return t.wait(ctx, time.Hour) // until the caller gives up
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

// repeat executes a request again, a little later.
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

// printable returns the readable parts of a message. Unlike String, it returns the same in every
// process.
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

// stream is a call with a stream of answers.
type stream struct {
	t      *tunnel
	ctx    context.Context
	cancel context.CancelFunc
	method string
	req    proto.Message
	in     chan any // messages, then an error
	last   time.Time
}

func (t *tunnel) open(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, method string, _ grpc.Streamer, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	s := &stream{t: t, method: method, in: make(chan any, 4096)}
	s.ctx, s.cancel = context.WithCancel(ctx)
	return s, nil
}

func (s *stream) Header() (metadata.MD, error) { return nil, nil }
func (s *stream) Trailer() metadata.MD         { return nil }
func (s *stream) Context() context.Context     { return s.ctx }
func (s *stream) SendMsg(m any) error          { s.req = m.(proto.Message); return nil }

// CloseSend sends the request.
func (s *stream) CloseSend() error {
	t := s.t
	t.w.play(func() {
		what, detail := t.p.name+" opens "+t.m.name+" "+s.method, text(s.req)
		if t.w.enterFor(s.ctx, what, detail) != nil {
			return
		}
		err := errBroken
		if !t.p.dead {
			err = t.trip(s.ctx, "arrives: "+what, detail, func() bool { return t.m.cut[t.p.index].to })
		}
		if err == nil && (!t.m.up || t.m.incarnation != t.life) {
			err = errBroken
		}
		if err != nil {
			s.finish(err)
			return
		}
		s.t.m.serve(s)
	})
	return nil
}

// send queues a message. The caller has the turn.
func (s *stream) send(m proto.Message) {
	w := s.t.w
	delay := w.between(100*time.Microsecond, 20*time.Millisecond)
	if !w.calm && w.chance(w.mood.late) {
		delay = w.between(0, 8*time.Second)
	}
	if !w.calm && w.chance(w.mood.stall) {
		delay = w.between(8*time.Second, 45*time.Second)
	}
	if !w.calm && w.chance(w.mood.lost) {
		w.logf("%s to %s breaks", s.t.m.name, s.t.p.name)
		s.t.end()
	}
	s.after(delay, proto.Clone(m))
}

// finish ends the stream of answers, successfully if err is nil.
func (s *stream) finish(err error) {
	if err == nil {
		err = io.EOF
	}
	s.after(0, err)
}

func (s *stream) after(delay time.Duration, item any) {
	at := time.Now().Add(delay)
	if !at.After(s.last) {
		at = s.last.Add(time.Nanosecond)
	}
	s.last = at
	if _, ended := item.(error); !ended && s.t.m.cut[s.t.p.index].from {
		return
	}
	time.AfterFunc(time.Until(at), func() {
		select {
		case s.in <- item:
		default: // the stream has no reader
		}
	})
}

func (s *stream) RecvMsg(m any) error {
	if s.ctx.Err() != nil || s.t.ctx.Err() != nil {
		return errBroken
	}
	select {
	case <-s.t.ctx.Done():
		return errBroken
	case <-s.ctx.Done():
		return errBroken
	case item := <-s.in:
		if err, ok := item.(error); ok {
			s.cancel()
			if errors.Is(err, io.EOF) || err == errBroken {
				return err
			}
			return errgrpc.ToGRPC(err)
		}
		proto.Merge(m.(proto.Message), item.(proto.Message))
		return nil
	}
}

// serve answers a call with a stream of answers.
func (m *machine) serve(s *stream) {
	switch r := s.req.(type) {
	case *agentpb.WatchRequest:
		m.watch(s, r)
	case *agentpb.PullImageRequest:
		m.pull(s, r)
	case *agentpb.LogsRequest:
		if m.kernels[r.KernelId] == nil {
			s.finish(fmt.Errorf("kernel %s is not on this node: %w", r.KernelId, errdefs.ErrNotFound))
			return
		}
		s.finish(nil)
	default:
		s.finish(fmt.Errorf("%T: %w", s.req, errdefs.ErrNotImplemented))
	}
}
