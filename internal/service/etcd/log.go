package etcd

import (
	"context"
	"log/slog"
	"sync/atomic"

	"go.uber.org/zap/zapcore"
)

// zapCore passes etcd's log lines from level warning upwards to slog. While the member starts or
// stops, it complains about every listener; these lines are logged at level debug.
type zapCore struct {
	logger  *slog.Logger
	serving *atomic.Bool
}

// harmless lines are logged once, when the member leads before its first commit; etcd does the work
// again seconds later.
var harmless = map[string]bool{
	"Failed to detect schema version":  true,
	"failed to update storage version": true,
}

var _ zapcore.Core = zapCore{}

func (c zapCore) Enabled(l zapcore.Level) bool { return l >= zapcore.WarnLevel }

func (c zapCore) With(fields []zapcore.Field) zapcore.Core {
	return zapCore{c.logger.With(attrs(fields)...), c.serving}
}

func (c zapCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

func (c zapCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	level := slog.LevelWarn
	switch {
	case !c.serving.Load() || harmless[e.Message]:
		level = slog.LevelDebug
	case e.Level > zapcore.WarnLevel:
		level = slog.LevelError
	}
	c.logger.Log(context.Background(), level, e.Message, attrs(fields)...)
	return nil
}

func (c zapCore) Sync() error { return nil }

func attrs(fields []zapcore.Field) []any {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(enc)
	}
	var out []any
	for k, v := range enc.Fields {
		out = append(out, k, v)
	}
	return out
}
