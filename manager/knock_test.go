package manager_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/berthhq/berth/manager/managertest"
)

// TestKnocksAreBounded opens WebSockets that send nothing.
func TestKnocksAreBounded(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	dial := func(c *managertest.Client) (*websocket.Conn, int) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), managertest.Timeout)
		defer cancel()
		conn, resp, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(m.URL, "http")+"/graphql", &websocket.DialOptions{
			HTTPHeader: c.Header.Clone(), Subprotocols: []string{"graphql-transport-ws"},
		})
		if err == nil {
			t.Cleanup(func() { conn.CloseNow() })
		}
		if resp == nil {
			t.Fatal(err)
		}
		return conn, resp.StatusCode
	}
	var held []*websocket.Conn
	for range 20 {
		conn, status := dial(m.Anonymous())
		if status != http.StatusSwitchingProtocols {
			t.Fatalf("socket %d: %d", len(held), status)
		}
		held = append(held, conn)
	}
	if _, status := dial(m.Anonymous()); status != http.StatusTooManyRequests {
		t.Errorf("one socket more: %d, want 429", status)
	}
	if _, status := dial(m.As(t, w.A.Member)); status != http.StatusSwitchingProtocols {
		t.Errorf("a socket with credentials: %d", status)
	}
	held[0].CloseNow()
	managertest.Eventually(t, "a place is free", func() bool {
		conn, status := dial(m.Anonymous())
		if status != http.StatusSwitchingProtocols {
			return false
		}
		// The place is free again when the server closes the socket because of missing credentials.
		if err := conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"connection_init"}`)); err != nil {
			t.Error(err)
		}
		_, _, err := conn.Read(t.Context())
		return err != nil && !errors.Is(err, io.EOF)
	})
}
