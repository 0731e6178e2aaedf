package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/runtime"
)

// pulls lets concurrent requests for the same image share one pull. A pull continues while at least
// one caller waits for it.
type pulls struct {
	runtime runtime.Runtime
	hub     *hub
	meter   *meter
	peers   func(*agentpb.PullImageRequest) runtime.Peers
	name    string // of the node

	mu      sync.Mutex
	running map[pullKey]*pull
}

type pullKey struct {
	reference, digest, username, password string
	lazy                                  bool
}

type pull struct {
	cancel  context.CancelFunc
	waiting map[*pullUpdates]bool
}

// pullUpdates has the latest progress that one caller has not read yet.
type pullUpdates struct {
	wake chan struct{}

	mu       sync.Mutex
	progress *agentpb.PullProgress
	err      error
}

func newPulls(a *Agent) *pulls {
	return &pulls{runtime: a.runtime, hub: a.hub, meter: a.meter, peers: a.peersFor, name: a.cfg.Name, running: map[pullKey]*pull{}}
}

func keyOf(r *agentpb.PullImageRequest) pullKey {
	return pullKey{r.Reference, r.Digest, r.Username, r.Password, r.Lazy}
}

// join starts a pull or joins the running pull of the same image.
func (p *pulls) join(r *agentpb.PullImageRequest) *pullUpdates {
	u := &pullUpdates{wake: make(chan struct{}, 1), progress: &agentpb.PullProgress{Reference: r.Reference, Phase: "resolving"}}
	p.mu.Lock()
	defer p.mu.Unlock()
	run, ok := p.running[keyOf(r)]
	if !ok {
		ctx, cancel := context.WithCancel(context.Background())
		run = &pull{cancel: cancel, waiting: map[*pullUpdates]bool{}}
		p.running[keyOf(r)] = run
		go p.run(ctx, r, run)
	}
	run.waiting[u] = true
	return u
}

// leave stops waiting. A pull is cancelled when its last caller leaves.
func (p *pulls) leave(r *agentpb.PullImageRequest, u *pullUpdates) {
	p.mu.Lock()
	defer p.mu.Unlock()
	run, ok := p.running[keyOf(r)]
	if !ok || !run.waiting[u] {
		return
	}
	delete(run.waiting, u)
	if len(run.waiting) == 0 {
		run.cancel()
		delete(p.running, keyOf(r))
	}
}

func (p *pulls) run(ctx context.Context, r *agentpb.PullImageRequest, run *pull) {
	defer run.cancel()
	req := runtime.PullRequest{
		Reference: r.Reference, Digest: r.Digest, PlainHTTP: r.PlainHttp, Username: r.Username, Password: r.Password, Proxy: r.Proxy,
		Certificates: r.Certificates, Lazy: r.Lazy, Peers: p.peers(r), Mirrors: mirrors(r),
	}
	begun := time.Now()
	p.meter.pulling.Inc()
	img, err := p.runtime.Pull(ctx, req, func(q runtime.Progress) {
		p.report(run, &agentpb.PullProgress{Reference: r.Reference, DoneBytes: q.Done, TotalBytes: q.Total, Phase: q.Phase}, nil)
	})
	p.meter.pulled(begun, err)
	p.mu.Lock()
	if p.running[keyOf(r)] == run {
		delete(p.running, keyOf(r))
	}
	p.mu.Unlock()
	if err != nil {
		p.report(run, nil, fmt.Errorf("agent %s: %w", p.name, err))
		return
	}
	p.report(run, &agentpb.PullProgress{Reference: r.Reference, Phase: "done", Done: true, Digest: img.Digest}, nil)
	p.hub.reportChanged() // the list of images has changed
}

func mirrors(r *agentpb.PullImageRequest) []runtime.Mirror {
	out := make([]runtime.Mirror, 0, len(r.Mirrors))
	for _, m := range r.Mirrors {
		out = append(out, runtime.Mirror{Host: m.Host, PlainHTTP: m.PlainHttp, Username: m.Username, Password: m.Password})
	}
	return out
}

func (p *pulls) report(run *pull, progress *agentpb.PullProgress, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for u := range run.waiting {
		u.set(progress, err)
	}
	if progress != nil {
		p.hub.pulled(progress)
	}
}

func (u *pullUpdates) set(progress *agentpb.PullProgress, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.progress, u.err = progress, err
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

func (u *pullUpdates) latest() (p *agentpb.PullProgress, err error, finished bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.progress, u.err, u.progress.GetDone()
}
