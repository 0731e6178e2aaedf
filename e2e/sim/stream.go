package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/agent/agentpb"
)

// stream is a call of which the answer has many messages.
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

// CloseSend sends the request on its way.
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

// send puts a message on its way, behind those that were sent before. Anyone who
// sends has the turn.
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

// finish ends the answer, well when err is nil.
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
		default: // no one reads it any more
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

// serve answers a call whose answer has many messages.
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
