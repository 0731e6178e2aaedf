package disk

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// spares is how many images are kept ready. A kernel that finds none makes its own,
// which takes some 30 ms more.
const spares = 2

// pool keeps images ready, of the size that was asked for last.
type pool struct {
	dir    string
	logger *slog.Logger
	wake   chan struct{}

	mu    sync.Mutex
	size  int64
	ready []string
}

func newPool(dir string, logger *slog.Logger) *pool {
	return &pool{dir: dir, logger: logger, wake: make(chan struct{}, 1), size: Default}
}

// take moves a spare image to a name; false when there is none of the size.
func (p *pool) take(size int64, to string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
	if size != p.size {
		p.size = size
		for _, file := range p.ready {
			_ = os.Remove(file)
		}
		p.ready = nil
		return false
	}
	for len(p.ready) > 0 {
		file := p.ready[0]
		p.ready = p.ready[1:]
		if os.Rename(file, to) == nil {
			return true
		}
	}
	return false
}

// run makes spares until the context ends, and removes them then.
func (p *pool) run(ctx context.Context) {
	defer p.empty()
	p.sweep()
	for n := 0; ; n++ {
		for p.make(ctx, n) {
			n++
		}
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		}
	}
}

// sweep removes what an agent that was killed left.
func (p *pool) sweep() {
	old, _ := filepath.Glob(filepath.Join(p.dir, "spare-*"))
	for _, file := range old {
		_ = os.Remove(file)
	}
}

// make adds a spare and reports whether there may be room for another. A disk that is
// full is tried again with the next kernel.
func (p *pool) make(ctx context.Context, n int) bool {
	p.mu.Lock()
	size, enough := p.size, len(p.ready) >= spares
	p.mu.Unlock()
	if enough || ctx.Err() != nil {
		return false
	}
	file := filepath.Join(p.dir, "spare-"+strconv.FormatInt(time.Now().UnixNano(), 36)+"-"+strconv.Itoa(n))
	if err := format(ctx, file, size); err != nil {
		if ctx.Err() == nil {
			p.logger.Warn("make a spare image", "error", err)
		}
		_ = os.Remove(file)
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.size != size || ctx.Err() != nil {
		_ = os.Remove(file)
		return true
	}
	p.ready = append(p.ready, file)
	return true
}

func (p *pool) empty() {
	p.mu.Lock()
	defer p.mu.Unlock()
	var err error
	for _, file := range p.ready {
		err = errors.Join(err, os.Remove(file))
	}
	p.ready = nil
	if err != nil {
		p.logger.Warn("remove spare images", "error", err)
	}
}
