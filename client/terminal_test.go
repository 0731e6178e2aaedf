package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/coder/websocket"
	"github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"
)

func accept(t *testing.T, w http.ResponseWriter, r *http.Request) *websocket.Conn {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		t.Error(err)
	}
	return conn
}

func text(t *testing.T, conn *websocket.Conn, s string) {
	if err := conn.Write(context.Background(), websocket.MessageText, []byte(s)); err != nil {
		t.Error(err)
	}
}

func TestTerminal(t *testing.T) {
	var got []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if diff := cmp.Diff([]string{"sh", "-c", "cat"}, q["command"]); diff != "" || q.Get("tty") != "1" || q.Get("cols") != "80" {
			t.Error(r.URL, diff)
		}
		if r.Header.Get("Authorization") != "Bearer secret" {
			t.Error("no token")
		}
		conn := accept(t, w, r)
		text(t, conn, `{"type":"started"}`)
		for range 4 {
			kind, b, err := conn.Read(r.Context())
			if err != nil {
				t.Error(err)
				return
			}
			got = append(got, fmt.Sprint(kind, " ", string(b)))
		}
		_ = conn.Write(r.Context(), websocket.MessageBinary, []byte("\x01to out"))
		_ = conn.Write(r.Context(), websocket.MessageBinary, []byte("\x02to err"))
		text(t, conn, `{"type":"exit","code":3}`)
		conn.Close(websocket.StatusNormalClosure, "")
	})
	term, err := c.OpenTerminal(t.Context(), TerminalOptions{Session: "s", Command: []string{"sh", "-c", "cat"}, TTY: true, Cols: 80, Rows: 24})
	if err != nil {
		t.Fatal(err)
	}
	defer term.Close()
	_, _ = io.WriteString(term, "keys")
	_ = term.Resize(t.Context(), 100, 30)
	_ = term.Signal(t.Context(), 2)
	_ = term.CloseInput(t.Context())
	var out, errs bytes.Buffer
	code, err := term.Output(t.Context(), &out, &errs)
	if code != 3 || err != nil || out.String() != "to out" || errs.String() != "to err" {
		t.Errorf("code %d, %v, %q, %q", code, err, out.String(), errs.String())
	}
	want := []string{
		`MessageBinary keys`, `MessageText {"type":"resize","cols":100,"rows":30}`,
		`MessageText {"type":"signal","signal":2}`, `MessageText {"type":"eof"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTerminalFailures(t *testing.T) {
	for name, c := range map[string]struct {
		h  http.HandlerFunc
		is func(error) bool
	}{
		"refused": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"detail":"the session does not run","code":"FAILED_PRECONDITION"}`)
		}, errdefs.IsFailedPrecondition},
		"error frame": {func(w http.ResponseWriter, r *http.Request) {
			text(t, accept(t, w, r), `{"type":"error","code":"NOT_FOUND","message":"no such program"}`)
		}, errdefs.IsNotFound},
		"connection lost": {func(w http.ResponseWriter, r *http.Request) {
			conn := accept(t, w, r)
			text(t, conn, `{"type":"started"}`)
			conn.CloseNow()
		}, errdefs.IsUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			term, err := serve(t, c.h).OpenTerminal(t.Context(), TerminalOptions{Session: "s"})
			if err == nil {
				defer term.Close()
				_, err = term.Output(t.Context(), io.Discard, io.Discard)
			}
			if !c.is(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestDialPort(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/sessions/s/ports/8888" {
			t.Error(r.URL.Path)
		}
		conn := websocket.NetConn(r.Context(), accept(t, w, r), websocket.MessageBinary)
		_, _ = io.CopyN(conn, conn, 5)
		conn.Close()
	})
	conn, err := c.DialPort(t.Context(), "s", 8888)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "hello")
	got, err := io.ReadAll(conn)
	if err != nil || string(got) != "hello" {
		t.Errorf("got %q, %v", got, err)
	}
}
