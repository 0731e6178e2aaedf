package layers

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/runtime"
)

// Dialer returns the TLS configuration for a connection to another agent.
type Dialer func(agent string) *tls.Config

const (
	connectTimeout = 3 * time.Second
	headerTimeout  = 10 * time.Second
	// silence is the longest time to wait for a frame: five times keepAlive.
	silence = 10 * time.Second
	// A sender that has the bytes must send minRate of them per second, over rateOver.
	minRate  = 64 << 10
	rateOver = 15 * time.Second
)

// open opens a part at another agent. fail is called if it stops before the end.
func (c *Client) open(ctx context.Context, from *agentpb.LayerAnswer, r runtime.PartRequest, fail func()) (runtime.PeerPart, error) {
	body, err := json.Marshal(request{Ticket: from.Ticket, Offset: r.Offset, Documents: r.Documents})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+from.Address+"/parts/"+r.Digest, bytes.NewReader(body))
	if err != nil {
		cancel(err)
		return nil, err
	}
	dial := net.Dialer{Timeout: connectTimeout}
	client := http.Client{
		Transport: &http.Transport{
			TLSClientConfig: c.Dial(from.Agent), TLSHandshakeTimeout: connectTimeout, DialContext: dial.DialContext,
			ResponseHeaderTimeout: headerTimeout, DisableKeepAlives: true, ReadBufferSize: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err == nil && resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxReason))
		_ = resp.Body.Close()
		err = fmt.Errorf("%s: %q: %w", resp.Status, text, errdefs.ErrUnavailable)
	}
	if err != nil {
		cancel(err)
		c.shunDead(from.Agent, err)
		return nil, err
	}
	p := &peerPart{client: c, agent: from.Agent, digest: r.Digest, body: resp.Body, fail: fail}
	p.pace = newPace(cancel)
	p.frames = frames{from: resp.Body, moved: p.moved}
	return p, nil
}

// shunDead does not ask an agent again for a while if it cannot be reached.
func (c *Client) shunDead(agent string, err error) {
	var refused net.Error
	if errors.As(err, &refused) && !errors.Is(err, context.Canceled) {
		c.shun(agent, avoidDead)
	}
}

// peerPart implements runtime.PeerPart.
type peerPart struct {
	client *Client
	agent  string
	digest string
	body   io.ReadCloser
	frames frames
	pace   *pace
	fail   func()
	once   sync.Once
}

func (p *peerPart) Agent() string { return p.agent }

func (p *peerPart) moved(n int) {
	p.pace.moved(n)
	p.client.Meter.received.WithLabelValues("agent").Add(float64(n))
}

func (p *peerPart) Read(b []byte) (int, error) {
	p.pace.wait()
	n, err := p.frames.Read(b)
	p.pace.rest()
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	if why := p.pace.why(); why != nil {
		err = why
	}
	p.once.Do(func() {
		p.fail()
		p.client.Meter.fetches.WithLabelValues("agent", "failed").Inc()
		p.client.Logger.Info("agent has stopped to send a part of an image", "agent", p.agent, "digest", p.digest, "error", err)
		if !errors.Is(err, errAborted) {
			p.client.shun(p.agent, avoidDead)
		}
	})
	return n, fmt.Errorf("part %s from agent %s: %w", p.digest, p.agent, err)
}

func (p *peerPart) Close() error {
	p.pace.stop()
	return p.body.Close()
}

// Corrupt implements runtime.PeerPart. It reads the last frame: a sender that was still fetching withdraws
// the part when it finds out.
func (p *peerPart) Corrupt(context.Context) {
	p.pace.wait()
	_, err := p.frames.Read(make([]byte, 1))
	p.pace.rest()
	p.once.Do(p.fail)
	if errors.Is(err, errAborted) {
		return
	}
	p.client.shun(p.agent, avoidCorrupt)
	p.client.Meter.fetches.WithLabelValues("agent", "corrupt").Inc()
	p.client.Logger.Warn("agent sent wrong bytes of a part of an image", "agent", p.agent, "digest", p.digest, "notAskedFor", avoidCorrupt)
}

// pace cancels a transfer whose sender is silent or too slow. It counts only the time in which the receiver
// waits for bytes.
type pace struct {
	cancel  context.CancelCauseFunc
	silent  *time.Timer
	reason  atomic.Pointer[error]
	since   time.Time // the receiver has begun to wait
	waited  time.Duration
	arrived int
}

func newPace(cancel context.CancelCauseFunc) *pace {
	p := &pace{cancel: cancel}
	p.silent = time.AfterFunc(time.Hour, func() {
		p.give(fmt.Errorf("no byte for %s: %w", silence, errdefs.ErrUnavailable))
	})
	p.silent.Stop()
	return p
}

func (p *pace) give(err error) {
	p.reason.CompareAndSwap(nil, &err)
	p.cancel(err)
}

func (p *pace) why() error {
	if e := p.reason.Load(); e != nil {
		return *e
	}
	return nil
}

// wait begins to wait for bytes.
func (p *pace) wait() {
	p.since = time.Now()
	p.silent.Reset(silence)
}

// moved counts bytes; 0 means that the sender waits for its own source.
func (p *pace) moved(n int) {
	p.silent.Reset(silence)
	now := time.Now()
	p.waited += now.Sub(p.since)
	p.since = now
	if n == 0 {
		p.waited, p.arrived = 0, 0
		return
	}
	p.arrived += n
	if p.waited >= rateOver {
		if float64(p.arrived)/p.waited.Seconds() < minRate {
			p.give(fmt.Errorf("%d bytes in %s are less than %d per second: %w", p.arrived, p.waited.Round(time.Second), minRate, errdefs.ErrUnavailable))
		}
		p.waited, p.arrived = 0, 0
	}
}

// rest is between two waits.
func (p *pace) rest() { p.silent.Stop() }

func (p *pace) stop() {
	p.silent.Stop()
	p.cancel(nil)
}
