package chatting

import (
	"bytes"
	"mime"
	"net/http"
)

// maxWhole limits an answer that is not a stream, in bytes.
const maxWhole = 8 << 20

// answerWriter reads what the router answers. It implements http.ResponseWriter.
type answerWriter struct {
	header http.Header
	in     *reader
	status int
	whole  bytes.Buffer // an answer that is not a stream
}

// Header implements http.ResponseWriter.
func (w *answerWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *answerWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

// Flush implements http.Flusher.
func (w *answerWriter) Flush() {}

// Write implements http.ResponseWriter.
func (w *answerWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.stream() {
		return w.in.Write(b)
	}
	if room := maxWhole - w.whole.Len(); room > 0 {
		w.whole.Write(b[:min(len(b), room)])
	}
	return len(b), nil
}

func (w *answerWriter) stream() bool {
	kind, _, _ := mime.ParseMediaType(w.header.Get("Content-Type"))
	return w.status < http.StatusBadRequest && kind == "text/event-stream"
}

// end returns the error of an answer that is not a stream, or reads its text.
func (w *answerWriter) end() error {
	if w.stream() || w.status == 0 {
		return nil
	}
	return w.in.all(w.status, w.whole.Bytes())
}

// all reads an answer that is not a stream.
func (r *reader) all(status int, body []byte) error {
	if status >= http.StatusBadRequest {
		if text := errorOf(body); text != "" {
			return failure(text)
		}
		return failure(http.StatusText(status))
	}
	if !r.object(bytes.TrimSpace(body)) {
		return failure("the engine did not answer as a chat does")
	}
	r.done = true
	return nil
}
