package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/containerd/errdefs"
)

// silence is the longest time without data. The server sends a comment every few seconds, so after
// this time the connection is dead.
const silence = 90 * time.Second

// quiet is the time after which an attempt without data counts as a stream, and not as an attempt
// to reach a server.
const quiet = time.Minute

// timeout is how long a stream is retried without success.
const timeout = 10 * time.Minute

// errCut marks the end of a stream before its last event.
var errCut = &Error{Code: codeUnavailable, Message: "the server closed the stream"}

// Subscribe runs a subscription and calls fn for each event's data until the
// server completes it. A stream cut before that is an errdefs.ErrUnavailable.
func (c *Client) Subscribe(ctx context.Context, r Request, fn func(json.RawMessage) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	resp, err := c.post(ctx, r, "text/event-stream")
	if err != nil {
		return err
	}
	if err := refused(resp, http.StatusOK); err != nil {
		return err
	}
	defer resp.Body.Close()
	if isJSON(resp) { // refused before the stream began
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		var out Response
		if json.Unmarshal(body, &out) == nil && out.Err() != nil {
			return out.Err()
		}
		return refusal(resp, body)
	}
	watchdog := time.AfterFunc(silence, func() { cancel(errCut) })
	defer watchdog.Stop()
	err = readEvents(resp.Body, func() { watchdog.Reset(silence) }, func(data []byte) error {
		var out Response
		if err := json.Unmarshal(data, &out); err != nil {
			return fmt.Errorf("read event: %w", err)
		}
		if err := out.Err(); err != nil {
			return err
		}
		return fn(out.Data)
	})
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, errCut) {
		return cause
	}
	return err
}

// subscribe runs a subscription and calls fn for each event.
func subscribe[Out any](ctx context.Context, c *Client, r Request, fn func(Out) error) error {
	return c.Subscribe(ctx, r, func(data json.RawMessage) error {
		var out Out
		if err := json.Unmarshal(data, &out); err != nil {
			return fmt.Errorf("read the server's answer: %w", err)
		}
		return fn(out)
	})
}

// readEvents reads server-sent events up to "complete". It calls alive for
// each line.
func readEvents(r io.Reader, alive func(), next func(data []byte) error) error {
	lines := bufio.NewReaderSize(r, 64<<10)
	var event string
	var data []byte
	for {
		line, err := readLine(lines)
		if err != nil {
			return err
		}
		alive()
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(line) > 0 && string(name) == "event":
			event = string(value)
		case len(line) > 0 && string(name) == "data":
			data = append(data, value...)
		case len(line) > 0: // a comment or an unknown field
		case event == "complete":
			return nil
		case event == "next":
			if err := next(data); err != nil {
				return err
			}
			event, data = "", nil
		default:
			event, data = "", nil
		}
	}
}

func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimRight(line, "\r\n"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, errCut
		case len(line) > maxAnswer:
			return nil, &Error{Code: codeInternal, Message: "the server sent an endless line"}
		}
	}
}

// Backoff is a series of pauses between attempts: 200 ms, then twice as long each
// time, at most 5 s.
type Backoff struct{ next time.Duration }

// Next returns the next pause.
func (b *Backoff) Next() time.Duration {
	const first, last = 200 * time.Millisecond, 5 * time.Second
	pause := min(max(b.next, first), last)
	b.next = 2 * pause
	return pause
}

// Reset starts the series again, after an attempt that received something.
func (b *Backoff) Reset() { b.next = 0 }

// Wait waits for the next pause or the end of the context, whose cause it returns.
func (b *Backoff) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(b.Next()):
		return nil
	}
}

// persist repeats attempt while it fails because no server answers. attempt reports whether it
// received anything, which restarts the timeout. warn, if not nil, is called with the error before
// each pause.
func persist(ctx context.Context, warn func(error), attempt func() (progress bool, err error)) error {
	var pauses Backoff
	since := time.Now()
	for {
		began := time.Now()
		progress, err := attempt()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !errdefs.IsUnavailable(err) {
			return err
		}
		if progress || time.Since(began) > quiet {
			pauses.Reset()
			since = time.Now()
		}
		if time.Since(since) > timeout {
			return err
		}
		if warn != nil {
			warn(err)
		}
		if err := pauses.Wait(ctx); err != nil {
			return err
		}
	}
}

// Retry calls attempt until the server is reachable, with back-off, for at most ten minutes. warn,
// if not nil, is called with the error before each pause.
func Retry(ctx context.Context, warn func(error), attempt func() error) error {
	return persist(ctx, warn, func() (bool, error) { return false, attempt() })
}
