package proc

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
)

const (
	tailLines  = 20
	longestOut = 16 << 10 // longest line
)

// output logs the output of a child line by line, and keeps the last lines for errors.
type output struct {
	logger *slog.Logger
	level  slog.Level
	name   string

	mu   sync.Mutex
	part []byte
	last []string
}

func newOutput(logger *slog.Logger, level slog.Level, name string) *output {
	return &output{logger: logger, level: level, name: name}
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.part = append(o.part, p...)
	for {
		line, rest, whole := bytes.Cut(o.part, []byte{'\n'})
		if !whole && len(line) < longestOut {
			return len(p), nil
		}
		o.line(strings.TrimRight(string(line), "\r"))
		o.part = rest
	}
}

func (o *output) line(s string) {
	if s == "" {
		return
	}
	if len(o.last) == tailLines {
		o.last = o.last[1:]
	}
	o.last = append(o.last, s)
	o.logger.Log(context.Background(), o.level, s, "child", o.name)
}

// tail returns the last lines.
func (o *output) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(append(o.last[:len(o.last):len(o.last)], string(o.part)), "\n")
}
