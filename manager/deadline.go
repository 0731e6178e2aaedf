package manager

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// bodyTimeout is how long the body of a request may take to arrive; 1 MiB is the most.
	bodyTimeout = 15 * time.Second
	// writeTimeout is how long a client may take nothing of an answer.
	writeTimeout = time.Minute
	// fileTimeout is for a file of the page, which is handed over at once.
	fileTimeout = 10 * time.Minute
	// loginTimeout bounds logins as a whole, with what they ask of identity providers.
	loginTimeout = 30 * time.Second
)

// timely gives requests deadlines: their bodies arrive in time, and someone takes their
// answers. Uploads and downloads of folders have deadlines of their own, and WebSockets
// are pinged.
func timely(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if strings.HasPrefix(r.URL.Path, "/storage/") || r.Header.Get("Upgrade") != "" {
			_ = control.SetWriteDeadline(time.Time{}) // that of the last request of the connection
			next.ServeHTTP(w, r)
			return
		}
		if r.Body != nil && r.Body != http.NoBody {
			_ = control.SetReadDeadline(time.Now().Add(bodyTimeout))
			r.Body = &timelyBody{r.Body, control}
		}
		if strings.HasPrefix(r.URL.Path, "/auth/") {
			ctx, cancel := context.WithTimeout(r.Context(), loginTimeout)
			defer cancel()
			r = r.WithContext(ctx)
		}
		t := &timelyWriter{w, control}
		next.ServeHTTP(t, r)
		t.more(writeTimeout) // what is still in a buffer
	})
}

// timelyBody takes the deadline off once all has arrived: a stream continues for long.
type timelyBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *timelyBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// timelyWriter gives every write its time.
type timelyWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (t *timelyWriter) more(d time.Duration) { _ = t.control.SetWriteDeadline(time.Now().Add(d)) }

func (t *timelyWriter) Write(b []byte) (int, error) {
	t.more(writeTimeout)
	return t.ResponseWriter.Write(b)
}

// ReadFrom leaves a file to the writer below.
func (t *timelyWriter) ReadFrom(src io.Reader) (int64, error) {
	t.more(fileTimeout)
	return io.Copy(t.ResponseWriter, src)
}

// Flush implements http.Flusher.
func (t *timelyWriter) Flush() {
	t.more(writeTimeout)
	_ = t.control.Flush()
}

// Unwrap lets http.ResponseController reach the writer below.
func (t *timelyWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }
