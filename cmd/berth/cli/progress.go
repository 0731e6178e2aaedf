package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
)

// Progress shows the progress of a transfer: one line on a terminal, nothing elsewhere.
type Progress struct {
	status *StatusLine
	verb   string
	Total  int64
	Files  int

	mu     sync.Mutex
	moved  int64
	ended  int
	last   time.Time
	resent int64 // bytes that the server had from an earlier run
}

// repaint is the minimum time between two updates of the line.
const repaint = 100 * time.Millisecond

// Progress returns the progress of transfers in one direction.
func (a *App) Progress(verb string) *Progress {
	s := a.StatusLine(false)
	s.quiet = !s.live
	return &Progress{status: s, verb: verb}
}

// File returns the counter of one file, which is called with the offset in the file.
func (p *Progress) File(name string) func(offset int64) {
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
func (p *Progress) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended++
}

func (p *Progress) text(name string) string {
	text := p.verb + " " + output.Bytes(p.moved)
	if p.Total > 0 {
		text += fmt.Sprintf(" of %s (%d%%)", output.Bytes(p.Total), p.moved*100/p.Total)
	}
	if p.Files > 1 {
		text += fmt.Sprintf(", file %d of %d", min(p.ended+1, p.Files), p.Files)
	}
	if d := p.status.now().Sub(p.status.since).Seconds(); d > 0.5 {
		text += ", " + output.Bytes(int64(float64(p.moved-p.resent)/d)) + "/s"
	}
	return text + ", " + name
}

// Pause shows why the transfer waits.
func (p *Progress) Pause(reason string) { p.status.Pause(reason) }

// Clear removes the line.
func (p *Progress) Clear() { p.status.Clear() }

// StatusLine shows on standard error what a command waits for: one line that
// is overwritten on a terminal, a line for each change elsewhere.
type StatusLine struct {
	w     io.Writer
	fd    int
	live  bool // a terminal
	quiet bool
	now   func() time.Time
	since time.Time

	mu    sync.Mutex
	text  string
	shown bool
	tick  *time.Ticker
	done  chan struct{}
}

// StatusLine returns a line that shows what a command waits for.
func (a *App) StatusLine(quiet bool) *StatusLine {
	s := &StatusLine{w: a.Err, quiet: quiet, now: a.Now, since: a.Now()}
	s.fd, s.live = Terminal(a.Err)
	return s
}

// Session shows the state of a session that has not started yet.
func (s *StatusLine) Session(name string, state client.SessionState) {
	if state.Ended() || state.Started() {
		return
	}
	text := name + ": " + state.Status.String()
	if p := state.Pending; p != nil {
		if p.Position > 0 {
			text += fmt.Sprintf(", position %d", p.Position)
		}
		if p.Summary != "" {
			text += ": " + p.Summary
		}
	} else if state.StatusMessage != "" {
		text += ": " + state.StatusMessage
	}
	s.Set(text)
}

// Pause shows that the server does not respond.
func (s *StatusLine) Pause(reason string) { s.Set(reason + "; trying again") }

// Set shows a text; on a terminal, with the elapsed time.
func (s *StatusLine) Set(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text = output.Clean(text)
	if s.quiet || (text == s.text && s.shown) {
		return
	}
	s.text, s.shown = text, true
	if !s.live {
		fmt.Fprintln(s.w, text)
		return
	}
	s.draw()
	if s.tick == nil {
		s.tick, s.done = time.NewTicker(time.Second), make(chan struct{})
		go s.run(s.tick, s.done)
	}
}

func (s *StatusLine) run(tick *time.Ticker, done chan struct{}) {
	for {
		select {
		case <-tick.C:
			s.mu.Lock()
			if s.shown {
				s.draw()
			}
			s.mu.Unlock()
		case <-done:
			return
		}
	}
}

func (s *StatusLine) draw() {
	width, _, err := term.GetSize(s.fd)
	if err != nil || width <= 0 {
		width = 80
	}
	text := output.Cut(s.text+"  "+output.Duration(s.now().Sub(s.since)), width-1)
	fmt.Fprintf(s.w, "\r\x1b[K%s", text)
}

// Clear removes the line.
func (s *StatusLine) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tick != nil {
		s.tick.Stop()
		close(s.done)
		s.tick = nil
	}
	if s.shown && s.live {
		fmt.Fprint(s.w, "\r\x1b[K")
	}
	if s.live {
		s.shown = false
	}
}
