package transfer

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// endless is a file without an end.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// TestADownloadThatNobodyReads has clients that ask and read nothing: the answer ends, and
// gives back what it held.
func TestADownloadThatNobodyReads(t *testing.T) {
	for name, send := range map[string]func(*exchange) error{
		"as a file": func(x *exchange) error {
			_, err := x.ReadFrom(io.LimitReader(endless{}, 1<<40))
			return err
		},
		"as an archive": func(x *exchange) error {
			b := make([]byte, 32<<10)
			for {
				if _, err := x.Write(b); err != nil {
					return err
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				x := &exchange{ResponseWriter: w, deadline: newDeadlines(w)}
				x.deadline.taken = 50 * time.Millisecond
				ended <- send(x)
			}))
			defer srv.Close()
			c, err := net.Dial("tcp", strings.TrimPrefix(srv.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-ended:
				if err == nil {
					t.Error("all was sent, though nobody read it")
				}
			case <-time.After(time.Minute):
				t.Fatal("it waits for its client")
			}
		})
	}
}
