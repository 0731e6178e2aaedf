package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"

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
		return nil, fmt.Errorf("--log-level %q: want debug, info, warn or error", level)
	}
	opt := &slog.HandlerOptions{Level: l}
	var h slog.Handler = slog.NewTextHandler(w, opt)
	if asJSON {
		opt.ReplaceAttr = seconds
		h = slog.NewJSONHandler(w, opt)
	}
	return slog.New(&repeats{Handler: requestid.LogHandler{Handler: h}, lines: &lines{last: map[string]*line{}}}), nil
}

// seconds writes durations in seconds, since slog's JSON has nanoseconds without a unit.
func seconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.Float64Value(a.Value.Duration().Seconds())
	}
	return a
}
