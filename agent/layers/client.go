package layers

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/internal/ticket"
)

const (
	// answerTimeout is the longest time to wait for the manager's answer. After that, the part comes from
	// the registry.
	answerTimeout = 5 * time.Second
	// An agent that sent wrong bytes is not asked again for avoidCorrupt, and one that did not deliver for
	// avoidDead.
	avoidCorrupt = 10 * time.Minute
	avoidDead    = 30 * time.Second
	// maxPeers is the number of agents that are tried for a part before the registry.
	maxPeers = 4
)

// Client opens parts of images at other agents. It asks the leading manager which one has them.
type Client struct {
	Dial     Dialer
	Verifier *ticket.Verifier          // of the server beside it, which receives the manager's keys
	Pins     func(references []string) // called with each list of images to keep
	Meter    *Meter
	Logger   *slog.Logger

	mu    sync.Mutex
	ask   *asking // nil: no manager leads
	avoid map[string]time.Time
}

// asking is a connection to the leading manager.
type asking struct {
	send    sync.Mutex
	stream  grpc.BidiStreamingServer[agentpb.LayerAnswer, agentpb.LayerQuestion]
	ended   <-chan struct{}
	last    uint64
	waiting map[uint64]chan *agentpb.LayerAnswer
}

// Answers serves the call with which the leading manager answers questions, until it ends.
func (c *Client) Answers(stream grpc.BidiStreamingServer[agentpb.LayerAnswer, agentpb.LayerQuestion]) error {
	a := &asking{stream: stream, ended: stream.Context().Done(), waiting: map[uint64]chan *agentpb.LayerAnswer{}}
	c.mu.Lock()
	c.ask = a
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.ask == a {
			c.ask = nil
		}
	}()
	for {
		m, err := stream.Recv()
		if err != nil {
			return nil // the manager has ended it
		}
		if len(m.Keys) > 0 {
			if err := c.Verifier.SetKeys(m.Keys); err != nil {
				return err
			}
		}
		if m.Pins != nil {
			c.Pins(m.Pins.References)
		}
		c.mu.Lock()
		answer := a.waiting[m.Id]
		delete(a.waiting, m.Id)
		c.mu.Unlock()
		if answer != nil {
			answer <- m
		}
	}
}

// question sends a question and returns the answer.
func (c *Client) question(ctx context.Context, q *agentpb.LayerQuestion) (*agentpb.LayerAnswer, error) {
	c.mu.Lock()
	a := c.ask
	if a == nil {
		c.mu.Unlock()
		return nil, fmt.Errorf("no manager leads: %w", errdefs.ErrUnavailable)
	}
	answer := make(chan *agentpb.LayerAnswer, 1)
	if q.End == agentpb.LayerQuestion_NONE {
		a.last++
		q.Id = a.last
		a.waiting[q.Id] = answer
	}
	c.mu.Unlock()
	a.send.Lock()
	err := a.stream.Send(q)
	a.send.Unlock()
	if err != nil || q.Id == 0 {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(a.waiting, q.Id)
	}()
	select {
	case m := <-answer:
		return m, nil
	case <-a.ended:
		return nil, fmt.Errorf("the manager no longer answers: %w", errdefs.ErrUnavailable)
	case <-ctx.Done():
		return nil, fmt.Errorf("the manager does not answer: %w", ctx.Err())
	}
}

// For returns the other agents as a source for the parts of an image.
func (c *Client) For(image string) runtime.Peers {
	return &peers{client: c, image: image, failed: map[string]map[string]bool{}}
}

// shun does not ask an agent again for a while.
func (c *Client) shun(agent string, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.avoid == nil {
		c.avoid = map[string]time.Time{}
	}
	if until := time.Now().Add(d); until.After(c.avoid[agent]) {
		c.avoid[agent] = until
	}
}

// shunned returns the agents that are not asked now.
func (c *Client) shunned() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.avoid, func(_ string, until time.Time) bool { return time.Now().After(until) })
	return slices.Collect(maps.Keys(c.avoid))
}

// peers are the sources for one pull.
type peers struct {
	client *Client
	image  string

	mu     sync.Mutex
	failed map[string]map[string]bool // agents, by digest
}

// Open implements runtime.Peers.
func (p *peers) Open(ctx context.Context, r runtime.PartRequest) (runtime.PeerPart, error) {
	for range maxPeers {
		answer, err := p.client.question(ctx, &agentpb.LayerQuestion{Image: p.image, Digest: r.Digest, Failed: p.without(r.Digest)})
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			p.client.Logger.Debug("no other agent asked for a part of an image", "digest", r.Digest, "error", err)
			return nil, nil
		}
		if answer.Agent == "" {
			return nil, nil
		}
		got, err := p.client.open(ctx, answer, r, func() { p.fail(answer.Agent, r.Digest) })
		if err == nil {
			return got, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		p.client.Meter.fetches.WithLabelValues("agent", "failed").Inc()
		p.client.Logger.Info("agent does not send a part of an image", "agent", answer.Agent, "digest", r.Digest, "error", err)
		p.fail(answer.Agent, r.Digest)
	}
	return nil, nil
}

// without returns the agents that should not be named for a part.
func (p *peers) without(digest string) []string {
	list := p.client.shunned()
	p.mu.Lock()
	defer p.mu.Unlock()
	for agent := range p.failed[digest] {
		list = append(list, agent)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (p *peers) fail(agent, digest string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed[digest] == nil {
		p.failed[digest] = map[string]bool{}
	}
	p.failed[digest][agent] = true
}

// Ended implements runtime.Peers.
func (p *peers) Ended(digest string, present bool) {
	end := agentpb.LayerQuestion_FAILED
	if present {
		end = agentpb.LayerQuestion_PRESENT
	}
	_, _ = p.client.question(context.Background(), &agentpb.LayerQuestion{Image: p.image, Digest: digest, End: end})
}
