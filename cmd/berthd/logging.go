package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/internal/requestid"
)

// logFlags adds the flags of the log, which every role has.
func logFlags(cmd *cobra.Command, level *string, asJSON *bool, defaultLevel string) {
	cmd.Flags().StringVar(level, "log-level", defaultLevel, "debug, info, warn or error")
	cmd.Flags().BoolVar(asJSON, "log-json", false, "log JSON lines; durations are in seconds")
}

// logger writes to standard error; level is one of debug, info, warn, error.
func logger(level string, asJSON bool) (*slog.Logger, error) {
	return loggerTo(os.Stderr, level, asJSON)
}

func loggerTo(w io.Writer, level string, asJSON bool) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level %q is not debug, info, warn or error", level)
	}
	opt := &slog.HandlerOptions{Level: l}
	var h slog.Handler = slog.NewTextHandler(w, opt)
	if asJSON {
		opt.ReplaceAttr = seconds
		h = slog.NewJSONHandler(w, opt)
	}
	return slog.New(&repeats{Handler: requestid.LogHandler{Handler: h}, lines: &lines{last: map[string]*line{}}}), nil
}

// seconds writes durations in seconds: slog's JSON would print nanoseconds without a unit.
func seconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.Float64Value(a.Value.Duration().Seconds())
	}
	return a
}

const (
	// repeatEvery is the minimum time between equal warnings.
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
