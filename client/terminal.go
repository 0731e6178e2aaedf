package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"

	"github.com/coder/websocket"
)

// TerminalOptions describe the command of a terminal.
type TerminalOptions struct {
	Session string
	Kernel  string   // ID; default: the main container
	Command []string // default: the image's shell
	TTY     bool
	Cols    int
	Rows    int
}

// Terminal is one process inside a session.
type Terminal struct{ conn *websocket.Conn }

// OpenTerminal starts the process.
func (c *Client) OpenTerminal(ctx context.Context, o TerminalOptions) (*Terminal, error) {
	q := url.Values{"command": o.Command, "tty": {"0"}}
	if o.TTY {
		q.Set("tty", "1")
	}
	if o.Cols > 0 && o.Rows > 0 {
		q.Set("cols", strconv.Itoa(o.Cols))
		q.Set("rows", strconv.Itoa(o.Rows))
	}
	if o.Kernel != "" {
		q.Set("kernel", o.Kernel)
	}
	conn, err := c.dial(ctx, "/sessions/"+o.Session+"/terminal?"+q.Encode())
	if err != nil {
		return nil, err
	}
	return &Terminal{conn: conn}, nil
}

// terminalControl is a text frame, in either direction.
type terminalControl struct {
	Type    string `json:"type"`
	Cols    int    `json:"cols,omitempty"`
	Rows    int    `json:"rows,omitempty"`
	Signal  int    `json:"signal,omitempty"`
	Code    any    `json:"code,omitempty"` // exit: a number; error: a class
	Message string `json:"message,omitempty"`
}

// Resize sets the size of the process's terminal.
func (t *Terminal) Resize(ctx context.Context, cols, rows int) error {
	return t.control(ctx, terminalControl{Type: "resize", Cols: cols, Rows: rows})
}

// Signal sends the process a signal.
func (t *Terminal) Signal(ctx context.Context, number int) error {
	return t.control(ctx, terminalControl{Type: "signal", Signal: number})
}

func (t *Terminal) control(ctx context.Context, m terminalControl) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return t.conn.Write(ctx, websocket.MessageText, b)
}

// Write sends bytes to the process's standard input.
func (t *Terminal) Write(p []byte) (int, error) {
	// The connection ends with the terminal, which bounds this write.
	if err := t.conn.Write(context.Background(), websocket.MessageBinary, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// CloseInput closes the standard input of the process.
func (t *Terminal) CloseInput(ctx context.Context) error {
	return t.control(ctx, terminalControl{Type: "eof"})
}

// Close disconnects the terminal, and the server ends its process.
func (t *Terminal) Close() error { return t.conn.CloseNow() }

// Output copies what the process writes until it exits, and returns its exit
// code.
func (t *Terminal) Output(ctx context.Context, stdout, stderr io.Writer) (int, error) {
	for {
		kind, b, err := t.conn.Read(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return 0, context.Cause(ctx)
			}
			return 0, &Error{Code: codeUnavailable, Message: "the connection to the session was lost: " + closeText(err)}
		}
		if kind == websocket.MessageBinary {
			if err := copyFrame(b, stdout, stderr); err != nil {
				return 0, err
			}
			continue
		}
		code, done, err := readControl(b)
		if err != nil || done {
			return code, err
		}
	}
}

func copyFrame(b []byte, stdout, stderr io.Writer) error {
	if len(b) == 0 {
		return nil
	}
	w := stdout
	if b[0] == 2 {
		w = stderr
	}
	if _, err := w.Write(b[1:]); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

func readControl(b []byte) (code int, done bool, err error) {
	var m terminalControl
	if err := json.Unmarshal(b, &m); err != nil {
		return 0, false, fmt.Errorf("read terminal frame: %w", err)
	}
	switch m.Type {
	case "exit":
		n, ok := m.Code.(float64)
		if !ok {
			return 0, false, &Error{Code: codeInternal, Message: "the server sent no exit code"}
		}
		return int(n), true, nil
	case "error":
		class, _ := m.Code.(string)
		return 0, false, &Error{Code: class, Message: m.Message}
	}
	return 0, false, nil
}

// DialPort connects to a loopback port of the session's main kernel.
func (c *Client) DialPort(ctx context.Context, session string, port int) (net.Conn, error) {
	conn, err := c.dial(ctx, fmt.Sprintf("/sessions/%s/ports/%d", session, port))
	if err != nil {
		return nil, err
	}
	return websocket.NetConn(ctx, conn, websocket.MessageBinary), nil
}

func (c *Client) dial(ctx context.Context, path string) (*websocket.Conn, error) {
	h := http.Header{}
	c.authorize(h)
	conn, resp, err := websocket.Dial(ctx, c.base.String()+path, &websocket.DialOptions{HTTPClient: c.http, HTTPHeader: h})
	if err != nil {
		if resp != nil && resp.StatusCode != http.StatusSwitchingProtocols {
			body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
			return nil, refusal(resp, body)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, unreachable(c.base, err)
	}
	conn.SetReadLimit(1 << 20)
	return conn, nil
}

func closeText(err error) string {
	var closed websocket.CloseError
	if errors.As(err, &closed) {
		if closed.Reason != "" {
			return closed.Reason
		}
		return closed.Code.String()
	}
	return err.Error()
}
