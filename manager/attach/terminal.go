package attach

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/coder/websocket"
	"github.com/containerd/errdefs/pkg/errgrpc"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/problem"
)

// First byte of a binary frame to the client.
const (
	stdout = 1
	stderr = 2
)

// control is a text frame, in either direction.
type control struct {
	Type    string `json:"type"`
	Columns uint32 `json:"cols,omitempty"`
	Rows    uint32 `json:"rows,omitempty"`
	Signal  int32  `json:"signal,omitempty"`
	Exit    *int32 `json:"code,omitempty"`
}

// terminal runs a command in a kernel, by default its shell on a terminal.
func (h *Handler) terminal(w http.ResponseWriter, r *http.Request) {
	start, err := startOf(r)
	if err != nil {
		problem.WriteHTTP(w, r, err)
		return
	}
	h.enter(w, r, true, func(ctx context.Context, e entered) {
		start.KernelId = e.kernel.ID.String()
		stream, err := e.rpc.Exec(ctx)
		if err == nil {
			err = stream.Send(&agentpb.ExecInput{Input: &agentpb.ExecInput_Start{Start: start}})
		}
		if err != nil {
			fail(ctx, e.conn, errgrpc.ToNative(err))
			return
		}
		go func() {
			defer e.cancel()
			input(ctx, e.conn, stream)
		}()
		output(ctx, e.conn, stream)
	})
}

func startOf(r *http.Request) (*agentpb.ExecStart, error) {
	q := r.URL.Query()
	start := &agentpb.ExecStart{Command: q["command"], Tty: q.Get("tty") != "0"}
	size := &agentpb.WindowSize{Columns: 80, Rows: 24}
	for name, to := range map[string]*uint32{"cols": &size.Columns, "rows": &size.Rows} {
		if text := q.Get(name); text != "" {
			n, err := strconv.ParseUint(text, 10, 16)
			if err != nil || n == 0 || n > 1000 {
				return nil, problem.Invalid(name, "must be a number from 1 to 1000").WithLimit("1..1000")
			}
			*to = uint32(n)
		}
	}
	if start.Tty {
		start.Size = size
		start.Environment = map[string]string{"TERM": "xterm-256color"}
	}
	return start, nil
}

// input forwards frames of the client until it disconnects.
func input(ctx context.Context, c *websocket.Conn, stream agentpb.Agent_ExecClient) {
	for {
		kind, data, err := c.Read(ctx)
		if err != nil {
			return
		}
		in := &agentpb.ExecInput{Input: &agentpb.ExecInput_Stdin{Stdin: data}}
		if kind == websocket.MessageText {
			var m control
			if json.Unmarshal(data, &m) != nil {
				_ = c.Close(websocket.StatusInvalidFramePayloadData, "text frames are JSON")
				return
			}
			switch m.Type {
			case "resize":
				in.Input = &agentpb.ExecInput_Resize{Resize: &agentpb.WindowSize{Columns: min(m.Columns, 1000), Rows: min(m.Rows, 1000)}}
			case "eof":
				in.Input = &agentpb.ExecInput_StdinEof{StdinEof: true}
			case "signal":
				in.Input = &agentpb.ExecInput_Signal{Signal: m.Signal}
			default:
				continue
			}
		}
		if stream.Send(in) != nil {
			return
		}
	}
}

// output forwards the output of the command, and its end.
func output(ctx context.Context, c *websocket.Conn, stream agentpb.Agent_ExecClient) {
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			_ = c.Close(websocket.StatusNormalClosure, "")
			return
		}
		if err != nil {
			fail(ctx, c, errgrpc.ToNative(err))
			return
		}
		switch o := m.Output.(type) {
		case *agentpb.ExecOutput_Stdout:
			err = c.Write(ctx, websocket.MessageBinary, append([]byte{stdout}, o.Stdout...))
		case *agentpb.ExecOutput_Stderr:
			err = c.Write(ctx, websocket.MessageBinary, append([]byte{stderr}, o.Stderr...))
		case *agentpb.ExecOutput_Started:
			err = sendControl(ctx, c, control{Type: "started"})
		case *agentpb.ExecOutput_Exit:
			if sendControl(ctx, c, control{Type: "exit", Exit: &o.Exit}) == nil {
				_ = c.Close(websocket.StatusNormalClosure, "")
			}
			return
		}
		if err != nil {
			return
		}
	}
}

func sendControl(ctx context.Context, c *websocket.Conn, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return c.Write(ctx, websocket.MessageText, b)
}

// fail sends the client the reason before the connection closes.
func fail(ctx context.Context, c *websocket.Conn, err error) {
	if ctx.Err() != nil {
		return
	}
	p, _ := problem.From(err)
	_ = sendControl(ctx, c, map[string]string{"type": "error", "code": p.Code, "message": p.Message})
	_ = c.Close(websocket.StatusInternalError, reason(err))
}
