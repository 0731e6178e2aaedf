package distribution

import (
	"bytes"
	"context"
	"encoding/hex"
	"log/slog"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/ticket"
)

// ticketLife is the time in which an agent can begin to fetch parts with a ticket. Every answer has a new one.
const ticketLife = 10 * time.Minute

// maxFailed limits the agents that a question excludes.
const maxFailed = 1000

// Signer signs tickets for the agents.
type Signer interface {
	Sign(c ticket.Claims) string
	PublicKeys() [][]byte
}

// Service answers the questions of agents.
type Service struct {
	signer Signer // nil: agents fetch everything from the registries
	log    *slog.Logger
	known  *tracker

	mu      sync.Mutex
	pulling map[pulling]*pull
	pins    map[string][]string    // references, by agent
	open    map[string]*connection // by agent
}

// pulling is a pull that a manager has requested: an agent, and the digest of an image.
type pulling struct{ agent, image string }

type pull struct {
	count int
	asked map[string]bool // digests of parts
}

// New returns a Service. signer can be nil.
func New(signer Signer, log *slog.Logger) *Service {
	return &Service{signer: signer, log: log, known: newTracker(), pulling: map[pulling]*pull{}, pins: map[string][]string{}, open: map[string]*connection{}}
}

// Pulling permits an agent to fetch the parts of an image from others until the returned function is called.
func (s *Service) Pulling(agent, image string) (ended func()) {
	key := pulling{agent, image}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pulling[key]
	if p == nil {
		p = &pull{asked: map[string]bool{}}
		s.pulling[key] = p
	}
	p.count++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		p.count--
		over := p.count == 0
		if over {
			delete(s.pulling, key)
		}
		s.mu.Unlock()
		if over {
			s.known.stopped(agent, p.asked)
		}
	})
}

// Report records the images of an agent and its address for other agents.
func (s *Service) Report(agent string, r *agentpb.Report) {
	images := make(map[string][]sized, len(r.Contents))
	for _, c := range r.Contents {
		if c.TotalBytes > 0 {
			continue // its list is not complete
		}
		list := make([]sized, 0, len(c.Layers))
		for _, l := range c.Layers {
			list = append(list, sized{named(l.Digest), l.Size})
		}
		images[c.Reference] = list
	}
	s.known.report(agent, r.Layers, images)
}

func named(sum []byte) string { return "sha256:" + hex.EncodeToString(sum) }

// Gone forgets an agent that is no longer connected.
func (s *Service) Gone(agent string) { s.known.gone(agent) }

// Missing returns the bytes of an image that an agent lacks. known is false if no connected agent has the image.
func (s *Service) Missing(agent, reference string) (bytes int64, known bool) {
	return s.known.missing(agent, reference)
}

// Serve answers the questions of an agent until ctx ends or the connection breaks. An agent of an earlier
// version asks none.
func (s *Service) Serve(ctx context.Context, agent string, rpc agentpb.AgentClient) {
	if s.signer == nil {
		return
	}
	for ctx.Err() == nil {
		err := s.serve(ctx, agent, rpc)
		if errdefs.IsNotImplemented(err) {
			return
		}
		if ctx.Err() == nil {
			s.log.Debug("questions about images ended", "agent", agent, "error", err)
			_ = clock.Pause(ctx, time.Second)
		}
	}
}

func (s *Service) serve(ctx context.Context, agent string, rpc agentpb.AgentClient) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := rpc.Layers(ctx)
	if err != nil {
		return errgrpc.ToNative(err)
	}
	c := &connection{stream: stream}
	if err := c.sendKeys(s.signer.PublicKeys()); err != nil {
		return errgrpc.ToNative(err)
	}
	pins := s.enter(agent, c)
	defer s.leave(agent, c)
	if pins != nil {
		if err := c.sendPins(pins); err != nil {
			return errgrpc.ToNative(err)
		}
	}
	go func() {
		tick := time.NewTicker(keysEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_ = c.sendKeys(s.signer.PublicKeys()) // Recv returns the error
			}
		}
	}()
	for {
		q, err := stream.Recv()
		if err != nil {
			return errgrpc.ToNative(err)
		}
		if q.End != agentpb.LayerQuestion_NONE {
			s.end(agent, q)
			continue
		}
		if err := c.send(s.answer(agent, q)); err != nil {
			return errgrpc.ToNative(err)
		}
	}
}

// keysEvery is the interval at which the keys of tickets are compared. A new key is in the ring some time before
// it signs.
const keysEvery = 30 * time.Second

// connection is the stream to one agent.
type connection struct {
	mu     sync.Mutex
	stream grpc.BidiStreamingClient[agentpb.LayerAnswer, agentpb.LayerQuestion]
	keys   [][]byte
}

func (c *connection) send(a *agentpb.LayerAnswer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stream.Send(a)
}

// sendKeys sends the keys if they have changed.
func (c *connection) sendKeys(keys [][]byte) error {
	if slices.EqualFunc(keys, c.keys, bytes.Equal) {
		return nil
	}
	if err := c.send(&agentpb.LayerAnswer{Keys: keys}); err != nil {
		return err
	}
	c.keys = keys
	return nil
}

func (c *connection) sendPins(references []string) error {
	return c.send(&agentpb.LayerAnswer{Pins: &agentpb.Pins{References: references}})
}

// enter makes a connection available for Pin, and returns the pins of the agent, nil if they are not known yet.
func (s *Service) enter(agent string, c *connection) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[agent] = c
	return s.pins[agent]
}

func (s *Service) leave(agent string, c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[agent] == c {
		delete(s.open, agent)
	}
}

// Pin sets the images that an agent keeps although it needs space. An agent removes no image before it has a list, even
// an empty one.
func (s *Service) Pin(agent string, references []string) {
	if references == nil {
		references = []string{}
	}
	s.mu.Lock()
	before, known := s.pins[agent]
	s.pins[agent] = references
	c := s.open[agent]
	s.mu.Unlock()
	if c != nil && (!known || !slices.Equal(before, references)) {
		_ = c.sendPins(references) // a broken connection sends them again when it is back
	}
}

var validDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// answer names the source of a part. An agent that asks for an image that no manager told it to pull gets no
// ticket: the registry decides whether it can have the image.
func (s *Service) answer(agent string, q *agentpb.LayerQuestion) *agentpb.LayerAnswer {
	registry := &agentpb.LayerAnswer{Id: q.Id}
	if !validDigest.MatchString(q.Digest) || len(q.Failed) > maxFailed {
		return registry
	}
	s.mu.Lock()
	p := s.pulling[pulling{agent, q.Image}]
	if p != nil {
		p.asked[q.Digest] = true
	}
	s.mu.Unlock()
	if p == nil {
		s.log.Warn("agent asks for an image that it was not told to pull", "agent", agent, "image", q.Image)
		return registry
	}
	source, address := s.known.find(agent, q.Digest, q.Failed)
	if source == "" {
		return registry
	}
	return &agentpb.LayerAnswer{Id: q.Id, Agent: source, Address: address, Ticket: s.signer.Sign(ticket.Claims{
		Operation: ticket.Layers, User: agent, Path: q.Image, Expires: time.Now().Add(ticketLife),
	})}
}

// end records the end of a fetch. Only a part that the agent asked for during a pull counts: what it has
// otherwise is in its report.
func (s *Service) end(agent string, q *agentpb.LayerQuestion) {
	s.mu.Lock()
	p := s.pulling[pulling{agent, q.Image}]
	ok := p != nil && p.asked[q.Digest]
	s.mu.Unlock()
	if ok {
		s.known.ended(agent, q.Digest, q.End == agentpb.LayerQuestion_PRESENT)
	}
}
