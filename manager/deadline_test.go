package manager_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// dialHTTP sends the beginning of a request over a connection of its own.
func dialHTTP(t *testing.T, url, begin string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(managertest.Timeout)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, begin); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestBodiesThatNeverEnd tests clients that announce a body and send one byte of it: each gets an
// answer and is cut off.
func TestBodiesThatNeverEnd(t *testing.T) {
	t.Parallel()
	m := managertest.New(t).Quiet(t)
	for _, path := range []string{"/auth/login", "/auth/signup", "/graphql"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			c := dialHTTP(t, m.URL, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", path))
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal("the manager still waits for the body")
			}
			if err == nil {
				resp.Body.Close()
				if !resp.Close && resp.StatusCode < 400 && path != "/graphql" {
					t.Errorf("status %d, and the connection stays", resp.StatusCode)
				}
			}
			if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the connection stays open")
			}
		})
	}
}

// TestAStreamOutlivesTheDeadlineOfItsBody checks that a stream of events can continue for longer
// than a body can take to arrive, and that the connection of a request serves the next one.
func TestAStreamOutlivesTheDeadlineOfItsBody(t *testing.T) {
	c := clustertest.New(t, 0)
	body := `{"query": "subscription { sessionChanged { id } }"}`
	conn := dialHTTP(t, c.Manager.URL, fmt.Sprintf("POST /graphql HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\nContent-Type: application/json\r\nX-Berth-CSRF: 1\r\nCookie: %s\r\nContent-Length: %d\r\n\r\n%s",
		strings.TrimPrefix(c.Manager.URL, "http://"), c.Member.Header.Get("Cookie"), len(body), body))
	in := bufio.NewReader(conn)
	begun := time.Now()
	pings := 0
	for time.Since(begun) < 20*time.Second { // the server pings every 15 s
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ended after %s: %v", time.Since(begun), err)
		}
		if strings.HasPrefix(line, ":") {
			pings++
		}
		if pings > 1 {
			return
		}
	}
}
