// Package logs reads the logs of containers from their agents, and makes agents remove old ones.
package logs

import (
	"context"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/agent/agentpb"
)

// Options select the part of a log, and whether to follow it.
type Options struct {
	Follow    bool
	Offset    int64
	TailLines int64
}

// Log is one reader of a kernel's log.
type Log struct {
	stream agentpb.Agent_LogsClient
	cancel context.CancelFunc
	gone   error  // error for a kernel that the agent does not know; nil: the agent's own
	rest   []byte // the first bytes of a character that is not complete yet
	next   int64
}

// Open opens the log of a kernel on its agent, until ctx ends or the log is closed. open counts the
// logs that are read. gone is the error if the agent does not know the kernel; nil: the agent's own.
func Open(ctx context.Context, rpc agentpb.AgentClient, kernel uuid.UUID, opt Options, gone error, open prometheus.Gauge) (*Log, error) {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := rpc.Logs(ctx, &agentpb.LogsRequest{
		KernelId: kernel.String(), Follow: opt.Follow, Offset: opt.Offset, TailLines: opt.TailLines,
	})
	if err != nil {
		cancel()
		return nil, errgrpc.ToNative(err)
	}
	open.Inc()
	context.AfterFunc(ctx, open.Dec)
	return &Log{stream: stream, cancel: cancel, gone: gone}, nil
}

// Next returns the next piece as text with its byte offsets. The error is
// io.EOF at the end of the log.
func (l *Log) Next() (text string, from, to int64, err error) {
	chunk, err := l.stream.Recv()
	if errors.Is(err, io.EOF) && len(l.rest) > 0 {
		rest := l.rest
		l.rest = nil
		return strings.ToValidUTF8(string(rest), "\uFFFD"), l.next - int64(len(rest)), l.next, nil
	}
	if err != nil {
		if errors.Is(err, io.EOF) {
			return "", 0, 0, io.EOF
		}
		err = errgrpc.ToNative(err)
		if errdefs.IsNotFound(err) && l.gone != nil {
			err = l.gone
		}
		return "", 0, 0, err
	}
	from = chunk.Offset
	data := chunk.Data
	if len(l.rest) > 0 && chunk.Offset == l.next {
		from -= int64(len(l.rest))
		data = append(l.rest, data...)
	}
	l.next = chunk.Offset + int64(len(chunk.Data))
	whole := len(data) - partial(data)
	l.rest = append([]byte(nil), data[whole:]...)
	return strings.ToValidUTF8(string(data[:whole]), "\uFFFD"), from, from + int64(whole), nil
}

// partial returns the number of bytes at the end that are the beginning of an incomplete character.
func partial(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// Close ends the stream.
func (l *Log) Close() { l.cancel() }

// IsEnd distinguishes the regular end from a failure.
func IsEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) }
