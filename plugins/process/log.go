package process

import (
	"context"
	"log/slog"
	"os"

	"github.com/hashicorp/go-hclog"
)

// stderr is the original standard error of the process: plugin.Serve replaces os.Stderr by one that
// hosts discard.
var stderr = os.Stderr

// Logger returns a logger to standard error in the format that hosts parse. A plugin must not log
// anywhere else.
func Logger() hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{
		Output:     stderr,
		JSONFormat: true,
		Level:      hclog.LevelFromString(os.Getenv("BERTH_PLUGIN_LOG_LEVEL")),
	})
}

// bridge forwards log lines of go-plugin and the plugin to slog.
func bridge(l *slog.Logger) hclog.Logger {
	if l == nil {
		l = slog.New(slog.DiscardHandler)
	}
	// The logger itself prints nothing. Its level controls which lines reach the sink.
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
		to = slog.LevelDebug // go-plugin's own progress messages; errors are also returned
	}
	s.to.Log(context.Background(), to, msg, args...)
}
