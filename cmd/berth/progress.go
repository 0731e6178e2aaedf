package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/berthhq/berth/cmd/berth/output"
)

// progress shows how far a transfer is: one line on a terminal, nothing
// elsewhere.
type progress struct {
	status *statusLine
	verb   string
	total  int64
	files  int

	mu     sync.Mutex
	moved  int64
	ended  int
	last   time.Time
	resent int64 // bytes that the server had from an earlier run
}

// repaint is the least time between two lines.
const repaint = 100 * time.Millisecond

func (a *app) progress(verb string) *progress {
	s := a.statusLine(false)
	s.quiet = !s.live
	return &progress{status: s, verb: verb}
}

// File returns the counter of one file; it is told the file's offset.
func (p *progress) File(name string) func(offset int64) {
	var before int64
	first := true
	return func(offset int64) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.moved += offset - before
		if first {
			p.resent += offset
		}
		before, first = offset, false
		if now := p.status.now(); now.Sub(p.last) >= repaint {
			p.last = now
			p.status.Set(p.text(name))
		}
	}
}

// Done counts a file as complete.
func (p *progress) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended++
}

func (p *progress) text(name string) string {
	text := p.verb + " " + output.Bytes(p.moved)
	if p.total > 0 {
		text += fmt.Sprintf(" of %s (%d%%)", output.Bytes(p.total), p.moved*100/p.total)
	}
	if p.files > 1 {
		text += fmt.Sprintf(", file %d of %d", min(p.ended+1, p.files), p.files)
	}
	if d := p.status.now().Sub(p.status.since).Seconds(); d > 0.5 {
		text += ", " + output.Bytes(int64(float64(p.moved-p.resent)/d)) + "/s"
	}
	return text + ", " + name
}

// Pause shows why nothing moves.
func (p *progress) Pause(reason string) { p.status.Pause(reason) }

// Clear takes the line away.
func (p *progress) Clear() { p.status.Clear() }
