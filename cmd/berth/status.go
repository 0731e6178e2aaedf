package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"golang.org/x/term"
)

// statusLine shows on standard error what a command waits for: one line that
// is overwritten on a terminal, a line for each change elsewhere.
type statusLine struct {
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

func (a *app) statusLine(quiet bool) *statusLine {
	s := &statusLine{w: a.err, quiet: quiet, now: a.now, since: a.now()}
	s.fd, s.live = terminal(a.err)
	return s
}

// Session shows a session that has not begun yet.
func (s *statusLine) Session(name string, state client.SessionState) {
	if state.Ended() || state.Started() {
		return
	}
	text := name + ": " + state.Status
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

// Pause shows that the server does not answer at the moment.
func (s *statusLine) Pause(reason string) { s.Set(reason + "; trying again") }

// Set shows a text, with the time that has passed on a terminal.
func (s *statusLine) Set(text string) {
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

func (s *statusLine) run(tick *time.Ticker, done chan struct{}) {
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

func (s *statusLine) draw() {
	width, _, err := term.GetSize(s.fd)
	if err != nil || width <= 0 {
		width = 80
	}
	text := output.Cut(s.text+"  "+output.Duration(s.now().Sub(s.since)), width-1)
	fmt.Fprintf(s.w, "\r\x1b[K%s", text)
}

// Clear takes the line away.
func (s *statusLine) Clear() {
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
