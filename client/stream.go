package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/containerd/errdefs"
)

// errStop ends a subscription from within fn.
var errStop = fmt.Errorf("stop: %w", errdefs.ErrAborted)

// WatchSession calls fn with the current state of the session and every later one, in order, until
// fn returns false. It continues after a restart of the server, when the last state can be
// repeated. warn is called with the error before each pause. With id "", it watches all sessions
// that the viewer can see.
func (c *Client) WatchSession(ctx context.Context, id string, warn func(error), fn func(SessionState) bool) error {
	r := Request{Query: sessionChanged_Operation, Variables: &__sessionChangedInput{ID: id}}
	seen := map[string]int{}
	err := persist(ctx, warn, func() (bool, error) {
		progress := false
		err := subscribe(ctx, c, r, func(out sessionChangedResponse) error {
			s := out.SessionChanged
			progress = true
			if s.Version < seen[s.ID] {
				return nil
			}
			seen[s.ID] = s.Version
			if s.Ended() && id == "" {
				delete(seen, s.ID)
			}
			if !fn(s) {
				return errStop
			}
			return nil
		})
		if err == nil { // a server that stops completes its streams
			err = errCut
		}
		return progress, err
	})
	if err == errStop {
		return nil
	}
	return err
}

// LogStream reads a kernel's log. After an error it can be read again, and continues at its offset.
type LogStream struct {
	Kernel string
	Follow bool
	// Tail skips all but the last lines at first; 0 skips nothing.
	Tail int
	// Warn, if set, is called before each pause, and for bytes that the server no longer has.
	Warn func(error)

	offset  int64
	started bool
}

// Offset returns how many bytes of the log have been read or skipped.
func (l *LogStream) Offset() int64 { return l.offset }

// CopyTo writes the log to w, each byte once, until the server says that it is
// complete.
func (l *LogStream) CopyTo(ctx context.Context, c *Client, w io.Writer) error {
	return persist(ctx, l.Warn, func() (bool, error) {
		v := &__kernelLogsInput{Kernel: l.Kernel, Follow: l.Follow}
		if l.started || l.Tail == 0 {
			v.Offset = new(l.offset)
		} else {
			v.TailLines = &l.Tail
		}
		before := l.offset
		err := subscribe(ctx, c, Request{Query: kernelLogs_Operation, Variables: v}, func(out kernelLogsResponse) error {
			return l.write(out, w)
		})
		return l.offset > before, err
	})
}

func (l *LogStream) write(chunk kernelLogsResponse, w io.Writer) error {
	k := chunk.KernelLogs
	text := k.Text
	switch {
	case k.NextOffset <= l.offset && l.started:
		return nil // this part was read before
	case k.Offset < l.offset:
		// Only text without replaced bytes can be cut at a byte offset.
		if int64(len(text)) != k.NextOffset-k.Offset {
			return &Error{Code: codeInternal, Message: fmt.Sprintf("the server repeats the log from byte %d, asked for %d", k.Offset, l.offset)}
		}
		text = text[l.offset-k.Offset:]
	case k.Offset > l.offset && (l.started || l.Tail == 0) && l.Warn != nil:
		l.Warn(fmt.Errorf("bytes %d to %d of the log are no longer kept: %w", l.offset, k.Offset, errdefs.ErrOutOfRange))
	}
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	l.offset, l.started = k.NextOffset, true
	return nil
}

// Log copies the stored log of a session's main container, byte by byte as it was written.
func (c *Client) Log(ctx context.Context, session string, w io.Writer) error {
	return c.ContainerLog(ctx, ContainerRef{Session: session}, w)
}

// ContainerLog copies the stored log of a container, byte by byte as it was written.
func (c *Client) ContainerLog(ctx context.Context, at ContainerRef, w io.Writer) error {
	path := "/sessions/" + url.PathEscape(at.Session) + "/log"
	if at.Kernel != "" {
		path += "?" + url.Values{"kernel": {at.Kernel}}.Encode()
	}
	req, err := c.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	resp, err := c.send(req)
	if err != nil {
		return err
	}
	if err := refused(resp, http.StatusOK); err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return unreachable(req.URL, err)
	}
	return nil
}
