package gateway

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/manager/app"
)

// everyMode runs a test in every mode. prefix is the path of the app.
func everyMode(t *testing.T, program func() http.Handler, test func(t *testing.T, w *world, prefix string)) {
	t.Run("hosts", func(t *testing.T) { test(t, newWorld(t, program()), "") })
	t.Run("paths", func(t *testing.T) {
		w := newWorld(t, program())
		w.host = "paths.test"
		test(t, w, app.PathPrefix+w.e.target.Label())
	})
	t.Run("ports", func(t *testing.T) {
		w := newWorld(t, program())
		w.onPort(20003)
		test(t, w, "")
	})
}

// events is a server of server-sent events. It numbers them, and continues after the last one that
// a client has. It sends the next event only when the test permits it.
type events struct{ next chan struct{} }

func (s events) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	n, _ := strconv.Atoi(r.Header.Get("Last-Event-ID"))
	rw.Header().Set("Content-Type", "text/event-stream")
	rw.Header().Set("Cache-Control", "no-cache")
	out := http.NewResponseController(rw)
	_, _ = io.WriteString(rw, "retry: 10\n\n")
	_ = out.Flush()
	for range 3 { // then the client reconnects
		select {
		case <-s.next:
		case <-r.Context().Done():
			return
		}
		n++
		fmt.Fprintf(rw, "id: %d\nevent: step\ndata: step %d of %s\ndata: done\n\n: heartbeat\n\n", n, n, r.URL.Path)
		_ = out.Flush()
	}
}

// source reads server-sent events as browsers do.
type source struct {
	t     *testing.T
	lines *bufio.Scanner
	last  string // ID
}

// event returns the type and the data of the next event; "" at the end.
func (s *source) event() (kind, data string) {
	s.t.Helper()
	id := s.last
	for s.lines.Scan() {
		name, value, _ := strings.Cut(s.lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case s.lines.Text() == "" && data != "":
			s.last = id
			return kind, strings.TrimSuffix(data, "\n")
		case name == "id":
			id = value
		case name == "event":
			kind = value
		case name == "data":
			data += value + "\n"
		}
	}
	return "", ""
}

// Events arrive one by one: the server sends the next one only after the client has received the
// one before. A client that reconnects continues after its last event.
func TestServerSentEvents(t *testing.T) {
	next := make(chan struct{})
	everyMode(t, func() http.Handler { return events{next} }, func(t *testing.T, w *world, prefix string) {
		last := ""
		for _, from := range []int{1, 4, 7} {
			header := http.Header{"Accept": {"text/event-stream"}}
			if last != "" {
				header.Set("Last-Event-ID", last)
			}
			resp := w.request(t, http.MethodGet, prefix+"/feed", nil, header)
			if resp.Header.Get("Content-Type") != "text/event-stream" || resp.ContentLength >= 0 {
				t.Fatalf("%s, %v", resp.Status, resp.Header)
			}
			s := source{t: t, lines: bufio.NewScanner(resp.Body), last: last}
			for n := from; n < from+3; n++ {
				next <- struct{}{}
				if kind, data := s.event(); kind != "step" || data != fmt.Sprintf("step %d of /feed\ndone", n) {
					t.Fatalf("event %d: %q %q", n, kind, data)
				}
			}
			if kind, data := s.event(); kind != "" {
				t.Errorf("after the end: %q %q", kind, data)
			}
			last = s.last
		}
	})
}

// framed returns a gRPC message with its length prefix, as in the body of gRPC-web.
func framed(t *testing.T, m proto.Message) string {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(b)))) + string(b)
}

// frame reads the next frame of gRPC-web: a message, or the trailers.
func frame(t *testing.T, r io.Reader) (trailers bool, body []byte) {
	t.Helper()
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		t.Fatalf("frame: %v", err)
	}
	body = make([]byte, binary.BigEndian.Uint32(head[1:]))
	if _, err := io.ReadFull(r, body); err != nil {
		t.Fatalf("frame: %v", err)
	}
	return head[0]&0x80 != 0, body
}

// web serves gRPC-web with a gRPC server over HTTP/1.1, with the trailers in the body.
type web struct{ *grpc.Server }

func (s web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor != 1 || r.Header.Get("Content-Type") != "application/grpc-web+proto" {
		http.Error(rw, "this server speaks gRPC-web over HTTP/1.1", http.StatusUnsupportedMediaType)
		return
	}
	two := r.Clone(r.Context())
	two.ProtoMajor, two.ProtoMinor = 2, 0
	two.Header.Set("Content-Type", "application/grpc+proto")
	two.Header.Set("Te", "trailers")
	out := &webAnswer{ResponseWriter: rw, header: http.Header{}}
	s.Server.ServeHTTP(out, two)
	var trailers strings.Builder
	for name, values := range out.header {
		if name = strings.TrimPrefix(name, http.TrailerPrefix); strings.HasPrefix(name, "Grpc-") || strings.HasPrefix(name, "X-") {
			fmt.Fprintf(&trailers, "%s: %s\r\n", strings.ToLower(name), values[0])
		}
	}
	_, _ = rw.Write(binary.BigEndian.AppendUint32([]byte{0x80}, uint32(trailers.Len())))
	_, _ = io.WriteString(rw, trailers.String())
}

// webAnswer keeps the trailers of an answer out of its header.
type webAnswer struct {
	http.ResponseWriter
	header http.Header
	begun  bool
}

func (a *webAnswer) Header() http.Header { return a.header }

func (a *webAnswer) WriteHeader(status int) {
	if a.begun {
		return
	}
	a.begun = true
	a.ResponseWriter.Header().Set("Content-Type", "application/grpc-web+proto")
	a.ResponseWriter.WriteHeader(status)
}

func (a *webAnswer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.ResponseWriter.Write(b)
}

func (a *webAnswer) Flush() {
	a.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(a.ResponseWriter).Flush()
}

// gRPC-web works over HTTP/1.1, with the trailers in the body. If a browser sends it over HTTP/2
// with TLS, it still reaches an app that supports only HTTP/1.1.
func TestGRPCWeb(t *testing.T) {
	step := make(chan struct{})
	everyMode(t, func() http.Handler { return web{testService(step)} }, func(t *testing.T, w *world, prefix string) {
		two := &http.Protocols{}
		two.SetUnencryptedHTTP2(true)
		for name, client := range map[string]http.RoundTripper{"HTTP/1.1": http.DefaultTransport, "HTTP/2": &http.Transport{Protocols: two}} {
			call := func(method string, m proto.Message) *http.Response {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+prefix+"/grpc.testing.TestService/"+method, strings.NewReader(framed(t, m)))
				if err != nil {
					t.Fatal(err)
				}
				r.Host = w.host
				r.Header.Set("Content-Type", "application/grpc-web+proto")
				r.Header.Set("X-Grpc-Web", "1")
				resp, err := client.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { resp.Body.Close() })
				if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/grpc-web+proto" {
					t.Fatalf("%s: %s, %v", name, resp.Status, resp.Header)
				}
				return resp
			}
			resp := call("UnaryCall", &testpb.SimpleRequest{Payload: &testpb.Payload{Body: []byte("hello")}})
			var answer testpb.SimpleResponse
			if last, body := frame(t, resp.Body); last || proto.Unmarshal(body, &answer) != nil || string(answer.Payload.GetBody()) != "hello" {
				t.Errorf("%s: the answer is %v", name, &answer)
			}
			if last, body := frame(t, resp.Body); !last || !strings.Contains(string(body), "grpc-status: 0\r\n") {
				t.Errorf("%s: trailers %q", name, body)
			}
			resp = call("UnaryCall", &testpb.SimpleRequest{ResponseStatus: &testpb.EchoStatus{Code: int32(codes.NotFound), Message: "nothing"}})
			if last, body := frame(t, resp.Body); !last || !strings.Contains(string(body), "grpc-status: 5\r\n") || !strings.Contains(string(body), "grpc-message: nothing\r\n") {
				t.Errorf("%s: trailers of a failure %q", name, body)
			}
			resp = call("StreamingOutputCall", &testpb.StreamingOutputCallRequest{ResponseParameters: make([]*testpb.ResponseParameters, 3)})
			for n := range 3 {
				step <- struct{}{}
				if last, _ := frame(t, resp.Body); last {
					t.Fatalf("%s: the stream ends after %d messages", name, n)
				}
			}
			if last, _ := frame(t, resp.Body); !last {
				t.Errorf("%s: the stream does not end", name)
			}
		}
	})
}
