package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/berthhq/berth/internal/requestid"
)

const (
	// repeatEvery is how often an unchanged warning is written.
	repeatEvery = time.Minute
	maxLines    = 1000 // in memory
)

// repeats drops warnings and errors that were written within the last minute, and adds the
// number of dropped lines to the next one, so that an unavailable store does not flood the
// log. It never drops lines of requests, because users search for them by the id of the
// request.
type repeats struct {
	slog.Handler
	with  string // from WithAttrs and WithGroup
	lines *lines
}

type lines struct {
	mu   sync.Mutex
	last map[string]*line
}

type line struct {
	at      time.Time
	dropped int
}

// Handle implements slog.Handler.
func (h *repeats) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn || requestid.From(ctx) != "" {
		return h.Handler.Handle(ctx, r)
	}
	key := h.with + r.Level.String() + " " + r.Message + " "
	r.Attrs(func(a slog.Attr) bool {
		key += lasting(a)
		return true
	})
	dropped, write := h.lines.take(key, r.Time)
	if !write {
		return nil
	}
	if dropped > 0 {
		r.AddAttrs(slog.Int("repeated", dropped))
	}
	return h.Handler.Handle(ctx, r)
}

// lasting returns an attribute as text, or "" for a duration, which differs each time.
func lasting(a slog.Attr) string {
	if a.Value.Kind() == slog.KindDuration {
		return ""
	}
	return a.String() + " "
}

// take reports whether to write a line now, and how many equal lines were dropped before.
func (l *lines) take(key string, now time.Time) (dropped int, write bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.last[key]
	if last != nil && now.Sub(last.at) < repeatEvery {
		last.dropped++
		return 0, false
	}
	if last != nil {
		dropped = last.dropped
	} else if len(l.last) >= maxLines {
		clear(l.last)
	}
	l.last[key] = &line{at: now}
	return dropped, true
}

// WithAttrs implements slog.Handler.
func (h *repeats) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := h.with
	for _, a := range attrs {
		with += lasting(a)
	}
	return &repeats{h.Handler.WithAttrs(attrs), with, h.lines}
}

// WithGroup implements slog.Handler.
func (h *repeats) WithGroup(name string) slog.Handler {
	return &repeats{h.Handler.WithGroup(name), h.with + name + ".", h.lines}
}
