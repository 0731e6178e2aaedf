package manager

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// bodyTimeout is how long the body of a request, at most 1 MiB, can take to arrive.
	bodyTimeout = 15 * time.Second
	// uploadTimeout is how long a client can stop sending a file for a session.
	uploadTimeout = time.Minute
	// writeTimeout is how long a client can stop reading an answer.
	writeTimeout = time.Minute
	// fileTimeout is the limit for a file of the page, which is sent with one call.
	fileTimeout = 10 * time.Minute
	// loginTimeout limits a login, including requests to identity providers.
	loginTimeout = 30 * time.Second
)

// timely sets deadlines for the bodies and the answers of requests. Uploads and downloads of
// folders have their own, and WebSockets use pings. A file for a session can take any time while it
// moves.
func timely(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if strings.HasPrefix(r.URL.Path, "/storage/") || r.Header.Get("Upgrade") != "" {
			_ = control.SetWriteDeadline(time.Time{}) // set by the previous request of the connection
			next.ServeHTTP(w, r)
			return
		}
		if r.Body != nil && r.Body != http.NoBody {
			_ = control.SetReadDeadline(time.Now().Add(bodyTimeout))
			r.Body = &timelyBody{r.Body, control, uploads(r)}
		}
		if strings.HasPrefix(r.URL.Path, "/auth/") {
			ctx, cancel := context.WithTimeout(r.Context(), loginTimeout)
			defer cancel()
			r = r.WithContext(ctx)
		}
		t := &timelyWriter{w, control}
		next.ServeHTTP(t, r)
		t.more(writeTimeout) // for bytes that are still in a buffer
	})
}

// timelyBody removes the deadline after the whole body has arrived, because a stream can
// continue for a long time.
type timelyBody struct {
	io.ReadCloser
	control *http.ResponseController
	upload  bool
}

func (b *timelyBody) Read(p []byte) (int, error) {
	if b.upload {
		_ = b.control.SetReadDeadline(time.Now().Add(uploadTimeout))
	}
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// uploads reports whether the body of a request is a file for a session.
func uploads(r *http.Request) bool {
	return r.Method == http.MethodPut && strings.HasPrefix(r.URL.Path, "/sessions/") && strings.HasSuffix(r.URL.Path, "/files/content")
}

// timelyWriter sets a deadline for every write.
type timelyWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (t *timelyWriter) more(d time.Duration) { _ = t.control.SetWriteDeadline(time.Now().Add(d)) }

func (t *timelyWriter) Write(b []byte) (int, error) {
	t.more(writeTimeout)
	return t.ResponseWriter.Write(b)
}

// ReadFrom lets the underlying writer copy a file.
func (t *timelyWriter) ReadFrom(src io.Reader) (int64, error) {
	t.more(fileTimeout)
	return io.Copy(t.ResponseWriter, src)
}

// Flush implements http.Flusher.
func (t *timelyWriter) Flush() {
	t.more(writeTimeout)
	_ = t.control.Flush()
}

// Unwrap lets http.ResponseController reach the underlying writer.
func (t *timelyWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }
