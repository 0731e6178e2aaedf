package process

import (
	"context"
	"log/slog"
	"os"

	"github.com/hashicorp/go-hclog"
)

// stderr is the process's own: plugin.Serve gives os.Stderr another, which hosts
// throw away.
var stderr = os.Stderr

// Logger writes lines that a host understands to standard error, the only place a
// plugin may log to.
func Logger() hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{
		Output:     stderr,
		JSONFormat: true,
		Level:      hclog.LevelFromString(os.Getenv("BERTH_PLUGIN_LOG_LEVEL")),
	})
}

// bridge hands go-plugin's and the plugin's log lines to slog.
func bridge(l *slog.Logger) hclog.Logger {
	if l == nil {
		l = slog.New(slog.DiscardHandler)
	}
	// The logger itself writes nothing; what counts is the sink, and the level
	// that lets lines through to it.
	out := hclog.NewInterceptLogger(&hclog.LoggerOptions{Level: hclog.Debug, Output: nowhere{}})
	out.RegisterSink(sink{l})
	return out
}

type nowhere struct{}

func (nowhere) Write(b []byte) (int, error) { return len(b), nil }

type sink struct{ to *slog.Logger }

func (s sink) Accept(name string, level hclog.Level, msg string, args ...any) {
	to := slog.LevelDebug
	switch level {
	case hclog.Info:
		to = slog.LevelInfo
	case hclog.Warn:
		to = slog.LevelWarn
	case hclog.Error:
		to = slog.LevelError
	}
	if name == "" && to > slog.LevelDebug {
		to = slog.LevelDebug // go-plugin's own running commentary; errors also come back as values
	}
	s.to.Log(context.Background(), to, msg, args...)
}
