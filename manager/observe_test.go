package manager

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// What counts requests does not come between a file and its connection, or the process
// would copy every byte of a download that goes by the manager's address.
func TestFilesReachTheConnection(t *testing.T) {
	m := &Manager{log: slog.New(slog.DiscardHandler)}
	file := strings.Repeat("x", 1<<20)
	server := httptest.NewUnstartedServer(m.observe(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "f", time.Time{}, strings.NewReader(file))
	})))
	var handed atomic.Int64
	server.Listener = handedListener{server.Listener, &handed}
	server.Start()
	defer server.Close()
	resp, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); err != nil || n != int64(len(file)) {
		t.Errorf("%d bytes, %v", n, err)
	}
	server.Close() // waits for the handler
	if n := handed.Load(); n < int64(len(file))*9/10 {
		t.Errorf("the connection was handed %d bytes of a file, the rest was copied", n)
	}
}

// handedListener counts what its connections are handed as a whole.
type handedListener struct {
	net.Listener
	handed *atomic.Int64
}

func (l handedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return handedConn{c, l.handed}, err
}

type handedConn struct {
	net.Conn
	handed *atomic.Int64
}

func (c handedConn) ReadFrom(src io.Reader) (int64, error) {
	n, err := io.Copy(c.Conn, src)
	c.handed.Add(n)
	return n, err
}
