package transfer

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// endless is a file of unlimited size.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// TestADownloadThatNobodyReads sends requests without reading the response. The response ends, and
// its resources are freed.
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
				x := &exchange{ResponseWriter: w, deadline: newDeadlines(w, func() {})}
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
					t.Error("everything was sent although the client did not read")
				}
			case <-time.After(time.Minute):
				t.Fatal("it waits for its client")
			}
		})
	}
}

// TestAnEndAfterTheLastByte ends an upload between its last byte and the response. The next request
// of the client is not affected.
func TestAnEndAfterTheLastByte(t *testing.T) {
	lost := make(chan error, 2)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lost <- r.Context().Err()
		if r.Method != http.MethodPatch {
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		x := &exchange{ResponseWriter: w, proto: r.ProtoMajor, deadline: newDeadlines(w, cancel)}
		x.deadline.extendRead()
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		x.deadline.end(errTaken())
		<-ctx.Done()
		x.deadline.clearRead()
		<-r.Context().Done() // net/http has reached the deadline
		x.WriteHeader(http.StatusNoContent)
	}))
	defer srv.Close()
	for _, method := range []string{http.MethodPatch, http.MethodHead} {
		req, err := http.NewRequest(method, srv.URL, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if err := <-lost; err != nil {
			t.Errorf("%s was over before it began: %v", method, err)
		}
	}
}
