package deployment

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/portstream"
	"github.com/berthhq/berth/manager/deployment/expression"
)

const (
	// firstProbe is the time between the first two checks of an engine that starts. It doubles up to lastProbe.
	firstProbe = 50 * time.Millisecond
	lastProbe  = time.Second
	// scrapeEvery is the time between two reads of the metrics of an engine.
	scrapeEvery = 5 * time.Second
	maxMetrics  = 8 << 20 // bytes of an engine's metrics
)

// health is what checks have found about a replica.
type health struct {
	ready  bool // it has answered
	misses int  // failures in a row since
	why    string
	values map[string]float64 // metrics of the engine
}

// probes check the engines of replicas, each in a goroutine of its own.
type probes struct {
	agents  Agents
	changed chan struct{} // a replica has become ready or has failed a check
	wait    sync.WaitGroup

	mu  sync.Mutex
	all map[uuid.UUID]*probe
}

func newProbes(agents Agents) *probes {
	return &probes{agents: agents, changed: make(chan struct{}, 1), all: map[uuid.UUID]*probe{}}
}

func (p *probes) stop() {
	p.mu.Lock()
	for _, x := range p.all {
		x.cancel()
	}
	p.mu.Unlock()
	p.wait.Wait()
}

// follow checks the replicas whose containers run, and no others.
func (p *probes) follow(all []*seen) {
	p.mu.Lock()
	defer p.mu.Unlock()
	running := map[uuid.UUID]bool{}
	for _, d := range all {
		for _, r := range d.replicas {
			at := place(r)
			if at == nil {
				continue
			}
			running[r.ID] = true
			if x := p.all[r.ID]; x != nil && x.kernel == at.ID {
				x.history.Want(d.expressions)
				continue
			}
			if x := p.all[r.ID]; x != nil {
				x.cancel()
			}
			p.begin(r, at, d.engines[r.Revision], d.expressions)
		}
	}
	for id, x := range p.all {
		if !running[id] {
			x.cancel()
			delete(p.all, id)
		}
	}
}

// place returns the main container of a replica if it runs; otherwise nil.
func place(r *ent.DeploymentReplica) *ent.Kernel {
	s := r.Edges.Session
	if s == nil || s.Status != lifecycle.Running || len(s.Edges.Kernels) == 0 || s.Edges.Kernels[0].Edges.Agent == nil {
		return nil
	}
	return s.Edges.Kernels[0]
}

func (p *probes) begin(r *ent.DeploymentReplica, at *ent.Kernel, e Engine, list []*expression.Expression) {
	ctx, cancel := context.WithCancel(context.Background())
	x := &probe{kernel: at.ID, agent: at.Edges.Agent.Name, engine: e, agents: p.agents, cancel: cancel, history: expression.NewHistory(r.ID.String())}
	x.history.Want(list)
	x.client = &http.Client{
		Transport:     &http.Transport{DialContext: x.dial, MaxIdleConns: 2, ResponseHeaderTimeout: seconds(e.Timeout), MaxResponseHeaderBytes: 64 << 10, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	p.all[r.ID] = x
	p.wait.Go(func() {
		defer x.client.CloseIdleConnections()
		x.run(ctx, func() {
			select {
			case p.changed <- struct{}{}:
			default:
			}
		})
	})
}

// of returns what is known about a replica.
func (p *probes) of(replica uuid.UUID) health {
	p.mu.Lock()
	x := p.all[replica]
	p.mu.Unlock()
	if x == nil {
		return health{}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	h := x.health
	h.values = maps.Clone(h.values)
	return h
}

// history returns the metrics of a replica; nil if it is not checked.
func (p *probes) history(replica uuid.UUID) *expression.History {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.all[replica]; x != nil {
		return x.history
	}
	return nil
}

// probe checks one engine. Its address is a port of a container, whatever the revision says about paths.
type probe struct {
	kernel uuid.UUID
	agent  string
	engine Engine
	agents Agents
	client *http.Client
	cancel context.CancelFunc
	// history has the metrics that expressions read.
	history *expression.History

	mu     sync.Mutex
	health health
}

func (x *probe) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	to, err := x.agents.Streams(x.agent)
	if err != nil {
		return nil, err
	}
	return portstream.Dial(ctx, to, x.kernel, x.engine.Port)
}

func (x *probe) run(ctx context.Context, tell func()) {
	wait := firstProbe
	var scraped time.Time
	for ctx.Err() == nil {
		err := x.check(ctx)
		if x.note(err) {
			tell()
		}
		ready := x.now().ready
		if ready && x.engine.Metrics != "" && time.Since(scraped) >= scrapeEvery {
			scraped = time.Now()
			values, err := x.scrape(ctx)
			x.mu.Lock()
			if x.health.values = values; err != nil {
				x.health.values = nil
			}
			x.mu.Unlock()
		}
		if ready {
			wait = seconds(x.engine.Interval)
		} else {
			wait = min(2*wait, lastProbe)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

func (x *probe) now() health {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.health
}

// note records the result of a check, and reports whether the leader must act.
func (x *probe) note(err error) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err != nil {
		x.health.why = err.Error()
		if x.health.ready {
			x.health.misses++
		}
		return x.health.ready
	}
	news := !x.health.ready || x.health.misses > 0
	x.health.ready, x.health.misses, x.health.why = true, 0, ""
	return news
}

// check asks the engine once.
func (x *probe) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, seconds(x.engine.Timeout))
	defer cancel()
	if x.engine.Health == "" {
		c, err := x.dial(ctx, "", "")
		if err != nil {
			return x.explain(err)
		}
		return c.Close()
	}
	resp, err := x.get(ctx, x.engine.Health)
	if err != nil {
		return x.explain(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
	if resp.StatusCode != x.engine.HealthStatus {
		return fmt.Errorf("%s on port %d answers %d instead of %d", x.engine.Health, x.engine.Port, resp.StatusCode, x.engine.HealthStatus)
	}
	return nil
}

func (x *probe) get(ctx context.Context, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://replica"+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "berth")
	return x.client.Do(req)
}

// explain says what a failed check means.
func (x *probe) explain(err error) error {
	switch {
	case portstream.Refused(err):
		return fmt.Errorf("the engine does not listen on port %d yet", x.engine.Port)
	case strings.Contains(err.Error(), "deadline exceeded"), strings.Contains(err.Error(), "timeout"):
		return fmt.Errorf("the engine on port %d does not answer within %v s", x.engine.Port, x.engine.Timeout)
	}
	return fmt.Errorf("the engine on port %d cannot be reached: %w", x.engine.Port, err)
}

// scrape reads the metrics of the engine, and adds them to the history. A metric with several series is their sum.
func (x *probe) scrape(ctx context.Context) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, seconds(x.engine.Timeout))
	defer cancel()
	resp, err := x.get(ctx, x.engine.Metrics)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("metrics: status %d", resp.StatusCode)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(io.LimitReader(resp.Body, maxMetrics))
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	out := make(map[string]float64, len(families))
	list := slices.Collect(maps.Values(families))
	samples, _ := expfmt.ExtractSamples(&expfmt.DecodeOptions{Timestamp: model.Now()}, list...) // without families of an unknown type
	x.history.Add(time.Now(), samples)
	for name, f := range families {
		for _, m := range f.GetMetric() {
			out[name] += valueOf(m)
		}
	}
	return out, nil
}

func valueOf(m *dto.Metric) float64 {
	switch {
	case m.Gauge != nil:
		return m.GetGauge().GetValue()
	case m.Counter != nil:
		return m.GetCounter().GetValue()
	case m.Untyped != nil:
		return m.GetUntyped().GetValue()
	}
	return 0
}
