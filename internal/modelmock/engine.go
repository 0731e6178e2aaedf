package modelmock

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Config describes an engine. Zero values have the defaults that are named.
type Config struct {
	// Model is the name that requests must have; default "mock".
	Model string
	// Prefill and Decode are tokens per second; 0: without a delay.
	Prefill, Decode float64
	// MaxRunning limits the sequences that are processed at once; default 256.
	MaxRunning int
	// BlockTokens is the size of a block of the prefix cache; default 16.
	BlockTokens int
	// CacheBlocks is the number of blocks of the prefix cache; default 4096.
	CacheBlocks int
	// MaxModelLen limits the tokens of a prompt and its answer; default 32768.
	MaxModelLen int
	// StartDelay is the time from New until the engine is ready.
	StartDelay time.Duration
}

// Engine is an http.Handler.
type Engine struct {
	cfg    Config
	mux    *http.ServeMux
	cache  *cache
	meter  *meter
	ready  time.Time
	asleep atomic.Bool

	slots   chan struct{} // of running sequences
	prefill sync.Mutex    // prompts are prefilled one after another
	faults  faults
	next    atomic.Int64 // number of the next answer
}

// New returns an engine.
func New(cfg Config) *Engine {
	cfg.Model = cmp.Or(cfg.Model, "mock")
	cfg.MaxRunning = cmp.Or(cfg.MaxRunning, 256)
	cfg.BlockTokens = cmp.Or(cfg.BlockTokens, 16)
	cfg.CacheBlocks = cmp.Or(cfg.CacheBlocks, 4096)
	cfg.MaxModelLen = cmp.Or(cfg.MaxModelLen, 32768)
	e := &Engine{
		cfg: cfg, cache: newCache(cfg.BlockTokens, cfg.CacheBlocks), ready: time.Now().Add(cfg.StartDelay),
		slots: make(chan struct{}, cfg.MaxRunning),
	}
	e.meter = newMeter(e)
	e.mux = e.routes()
	return e
}

// Metrics returns the engine's registry.
func (e *Engine) Metrics() *prometheus.Registry { return e.meter.registry }

// ServeHTTP serves the API.
func (e *Engine) ServeHTTP(rw http.ResponseWriter, r *http.Request) { e.mux.ServeHTTP(rw, r) }

// sequence is a prompt that is being answered.
type sequence struct {
	prompt []string
	answer []string
	cached int // tokens of the prompt that were in the cache
	start  time.Time
}

// run calls emit for every token of the answer when it is decoded. It returns the error of the
// context if the client is gone, or that of emit.
func (e *Engine) run(ctx context.Context, s *sequence, emit func(index int, token string) error) error {
	if err := e.enter(ctx); err != nil {
		return err
	}
	defer e.leave()
	if err := e.fill(ctx, s); err != nil {
		return err
	}
	for i, token := range s.answer {
		if i > 0 {
			if err := pause(ctx, 1, e.cfg.Decode); err != nil {
				return err
			}
		} else {
			e.meter.firstToken.Observe(time.Since(s.start).Seconds())
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		e.meter.generated.Inc()
		if err := emit(i, token); err != nil {
			return err
		}
	}
	e.meter.succeeded.Inc()
	return nil
}

// enter waits for a place among the running sequences.
func (e *Engine) enter(ctx context.Context) error {
	e.meter.waiting.Inc()
	defer e.meter.waiting.Dec()
	select {
	case e.slots <- struct{}{}:
		e.meter.running.Inc()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *Engine) leave() {
	<-e.slots
	e.meter.running.Dec()
}

// fill prefills what the cache lacks of the prompt.
func (e *Engine) fill(ctx context.Context, s *sequence) error {
	e.prefill.Lock()
	defer e.prefill.Unlock()
	s.cached = e.cache.take(s.prompt)
	e.meter.prompt.Add(float64(len(s.prompt)))
	e.meter.queries.Add(float64(len(s.prompt)))
	e.meter.hits.Add(float64(s.cached))
	return pause(ctx, len(s.prompt)-s.cached, e.cfg.Prefill)
}

// pause waits for the time of n tokens.
func pause(ctx context.Context, n int, rate float64) error {
	if rate <= 0 || n <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(time.Duration(float64(n) / rate * float64(time.Second)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
