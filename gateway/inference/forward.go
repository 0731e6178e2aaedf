package inference

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// maxAnswer limits an answer that is not a stream, in bytes.
const maxAnswer = 64 << 20

var (
	errNoReplica = errors.New("no replica of the model is ready")
	errCut       = errors.New("the engine ended the stream early")
)

// exchange is one request on its way.
type exchange struct {
	*Router
	*Access
	api    api
	rw     http.ResponseWriter
	req    *http.Request
	body   *body
	blocks []uint64 // of the prompt, and then its session
	start  time.Time
	record Record
	begun  bool // the header of the answer is sent
	ended  bool // the record is counted
	cut    bool // the client must see that the answer is not complete
	kept   *content
}

func (r *Router) answer(a api) http.HandlerFunc {
	return func(rw http.ResponseWriter, req *http.Request) { r.exchange(a, rw, req) }
}

func (r *Router) exchange(a api, rw http.ResponseWriter, req *http.Request) {
	b, err := readRequest(req, a)
	if err != nil {
		refuseError(rw, err)
		return
	}
	session, err := affinityOf(req, b)
	if err != nil {
		refuseError(rw, err)
		return
	}
	access, err := r.cfg.Models.Open(req.Context(), KeyOf(req), b.model, a.group)
	if err != nil {
		refuseError(rw, err)
		return
	}
	x := &exchange{Router: r, Access: access, api: a, rw: rw, req: req, body: b, start: time.Now(), record: Record{Model: access.Model.Name}}
	x.blocks = x.Model.set.prefixes.blocks(x.Tenant, b.prefix)
	if session != "" { // as the longest prefix
		x.blocks = append(x.blocks, x.Model.set.prefixes.session(x.Tenant, session))
	}
	if access.Keep != nil {
		x.kept = newContent(a, b)
		defer func() { access.Keep(x.record, x.kept.text()) }()
	}
	defer x.end()
	x.serve()
	if x.cut {
		panic(http.ErrAbortHandler)
	}
}

// end counts the record once.
func (x *exchange) end() {
	if x.ended {
		return
	}
	x.ended = true
	x.record.Duration = time.Since(x.start)
	x.Count(x.record)
}

func readRequest(req *http.Request, a api) (*body, error) {
	name := req.PathValue("name")
	if a.form {
		return readForm(req.Body, req.ContentLength, req.Header.Get("Content-Type"), name)
	}
	return readBody(req.Body, req.ContentLength, a, name)
}

// serve tries replicas until one begins to answer.
func (x *exchange) serve() {
	var tried []*replica
	last := errNoReplica
	for len(tried) < x.cfg.Tries {
		pick := func() *replica { return x.Model.set.pickIn(x.Group, x.blocks, tried, time.Now()) }
		chosen := pick()
		if chosen == nil && len(tried) == 0 {
			if chosen, last = x.await(pick); x.req.Context().Err() != nil {
				x.left(chosen)
				return
			}
		}
		if chosen == nil {
			break
		}
		tried = append(tried, chosen)
		x.record.Replica, x.record.Tries = chosen.ID, len(tried)
		o, err := x.try(chosen)
		if err == nil || o == abandoned {
			if x.req.Context().Err() != nil && x.record.Status == 0 {
				x.record.Status = statusLeft
			}
			return
		}
		last = err
	}
	x.refuse(last)
}

// left ends a request whose client left before a replica got it.
func (x *exchange) left(chosen *replica) {
	x.record.Status = statusLeft
	if chosen != nil {
		chosen.leave(time.Now(), abandoned)
		x.Model.room.notify()
	}
}

// refuse answers with an error. In a stream that has begun, it is an event.
func (x *exchange) refuse(err error) {
	f := failureOf(err)
	x.record.Status = f.status
	if x.begun {
		_ = x.send(x.event(errorText(f.code, f.message)))
		return
	}
	refuseError(x.rw, err)
}

// event returns a JSON text as a part of the stream.
func (x *exchange) event(text []byte) []byte {
	text = bytes.TrimSpace(text)
	if x.api.lines {
		return append(bytes.Clone(text), '\n')
	}
	return append(append([]byte("data: "), text...), "\n\n"...)
}

// send writes bytes of a stream at once.
func (x *exchange) send(event []byte) error {
	if err := x.write(event); err != nil {
		return err
	}
	return http.NewResponseController(x.rw).Flush()
}

// write writes a part of the answer, which the client gets at the latest at its end.
func (x *exchange) write(part []byte) error {
	_ = http.NewResponseController(x.rw).SetWriteDeadline(time.Now().Add(x.cfg.WriteTimeout))
	x.kept.add(part)
	_, err := x.rw.Write(part)
	return err
}

// try sends the request to a replica. An error means that the client has seen nothing.
func (x *exchange) try(to *replica) (o outcome, err error) {
	ctx, cancel := context.WithCancelCause(x.req.Context())
	defer cancel(nil)
	o = failed
	defer func() {
		if x.req.Context().Err() != nil {
			o = abandoned
		}
		to.leave(time.Now(), o)
		x.Model.room.notify()
	}()
	timer := time.AfterFunc(x.cfg.FirstByte, func() { cancel(errors.New("the engine did not begin its answer in time")) })
	defer timer.Stop()
	resp, err := to.transport().RoundTrip(x.outgoing(ctx))
	if err != nil {
		return o, fmt.Errorf("replica %s: %w", to.ID, err)
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusTooManyRequests:
		return o, fmt.Errorf("replica %s: status %d", to.ID, resp.StatusCode)
	}
	switch kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind {
	case "text/event-stream", "application/x-ndjson":
		return x.relay(resp, timer)
	case "application/json":
	default:
		if x.api.binary && resp.StatusCode == http.StatusOK {
			return x.pass(resp, timer)
		}
	}
	return x.whole(resp, timer)
}

// outgoing returns the request for the engine. It has the client's body and no header that identifies
// the client or that the engine could take for an order of the platform.
func (x *exchange) outgoing(ctx context.Context) *http.Request {
	out, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://replica"+x.api.path, nil)
	out.ContentLength = int64(len(x.body.bytes))
	out.GetBody = func() (io.ReadCloser, error) { return &prompt{rest: x.body.bytes}, nil } // for a connection that was closed
	out.Body, _ = out.GetBody()
	out.Header.Set("Content-Type", x.body.kind)
	out.Header.Set("User-Agent", "berth")
	out.Header.Set("Accept", x.req.Header.Get("Accept"))
	return out
}

// prompt is the body of a request to an engine. It keeps nothing after it has been sent.
type prompt struct {
	mu   sync.Mutex // the transport can close a body that it is reading
	rest []byte
}

func (p *prompt) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

func (p *prompt) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rest = nil
	return nil
}

// begin sends the header of the answer. Nothing of the prompt is needed from here on, and an answer can take minutes.
func (x *exchange) begin(resp *http.Response) {
	x.body.bytes, x.body.prefix, x.blocks = nil, nil, nil
	x.record.Status = resp.StatusCode
	x.record.FirstByte = time.Since(x.start)
	x.header(resp.Header.Get("Content-Type"), resp.StatusCode)
}

// header sends the header of the answer once.
func (x *exchange) header(kind string, status int) {
	if x.begun {
		return
	}
	x.begun = true
	x.rw.Header().Set("Content-Type", kind)
	// An engine is a user's program: a browser must not run what it answers at the address of the gateway.
	x.rw.Header().Set("Content-Security-Policy", "default-src 'none'; sandbox")
	x.rw.Header().Set("X-Content-Type-Options", "nosniff")
	if x.record.Replica != "" {
		x.rw.Header().Set("Berth-Replica", x.record.Replica)
	}
	if x.kept != nil {
		x.rw.Header().Set("Berth-Recorded", "true")
	}
	x.rw.WriteHeader(status)
}

// whole sends an answer that is not a stream.
func (x *exchange) whole(resp *http.Response, first *time.Timer) (outcome, error) {
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(text) > maxAnswer {
		err = fmt.Errorf("the answer has more than %d MiB", maxAnswer>>20)
	}
	if err != nil {
		return failed, fmt.Errorf("replica %s: read the answer: %w", x.record.Replica, err)
	}
	first.Stop()
	x.record.Counted = x.record.Usage.read(text)
	inStream := x.begun // an error of the engine in a stream that waited
	if !inStream {
		x.rw.Header().Set("Content-Length", strconv.Itoa(len(text)))
	}
	x.begin(resp)
	x.end() // before the client has the answer, so budgets are exact
	if inStream {
		_ = x.send(x.event(text))
	} else {
		_ = x.write(text) // with the header in one piece
	}
	if resp.StatusCode >= http.StatusInternalServerError {
		return failed, nil
	}
	return answered, nil
}

// pass passes a file on as it comes. If the engine ends early, so does the connection.
func (x *exchange) pass(resp *http.Response, first *time.Timer) (outcome, error) {
	part := make([]byte, 32<<10)
	n, err := resp.Body.Read(part)
	if n == 0 && err != nil && !errors.Is(err, io.EOF) {
		return failed, fmt.Errorf("replica %s: read the answer: %w", x.record.Replica, err)
	}
	first.Stop()
	x.kept.isFile()
	x.begin(resp)
	for ; ; n, err = resp.Body.Read(part) {
		if n > 0 && x.send(part[:n]) != nil {
			return abandoned, nil
		}
		switch {
		case errors.Is(err, io.EOF):
			return answered, nil
		case x.req.Context().Err() != nil:
			return abandoned, nil
		case err != nil:
			x.cut = true
			return failed, nil
		}
	}
}

// relay passes a stream on, event by event and byte by byte. The event with the usage is left out if
// the client did not ask for it.
func (x *exchange) relay(resp *http.Response, first *time.Timer) (outcome, error) {
	events := newEvents(resp.Body, x.api.lines)
	event, err := events.next()
	if err != nil && len(event) == 0 {
		return failed, fmt.Errorf("replica %s: read the stream: %w", x.record.Replica, err)
	}
	first.Stop()
	x.begin(resp)
	for ; ; event, err = events.next() {
		if len(event) > 0 && x.show(event) {
			if x.send(event) != nil {
				return abandoned, nil
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return answered, nil
		case x.req.Context().Err() != nil: // clients leave after [DONE], engines end their streams a little later
			return abandoned, nil
		case err != nil:
			// The client sees that the answer is not complete.
			x.refuse(errCut)
			return failed, nil
		}
	}
}

// show reports whether the client gets an event, and counts the usage in it.
func (x *exchange) show(event []byte) bool {
	if x.api.lines {
		x.record.Counted = x.record.Usage.read(event) || x.record.Counted
		return true
	}
	for line := range bytes.Lines(event) {
		data, is := bytes.CutPrefix(line, []byte("data:"))
		if !is || !x.record.Usage.read(data) {
			continue
		}
		x.record.Counted = true
		if x.body.addedUsage && onlyUsage(data) {
			return false
		}
	}
	return true
}
