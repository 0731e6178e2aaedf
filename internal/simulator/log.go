package simulator

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Exchange is a request and its response, without secrets.
type Exchange struct {
	Method string
	Target string // path and query
	Auth   string // "Basic", "Bearer", or the name of the header with a token
	Body   string
	Status int // 0 = the connection was closed
	Answer string
}

// maxBody limits the request body that a product reads.
const maxBody = 1 << 20

// ServeHTTP applies faults, passes the request to the product, and logs both sides.
func (a *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	e := Exchange{Method: r.Method, Target: r.URL.RequestURI(), Auth: scheme(r), Body: string(body)}
	held := &answer{ResponseWriter: w}
	defer func() {
		if reason := recover(); reason != nil {
			a.keep(e)
			panic(reason)
		}
		e.Status, e.Answer = held.status, held.body.String()
		a.keep(e)
		held.send()
	}()
	f := a.hit(r)
	if a.misbehave(held, r, f) {
		a.product.ServeHTTP(held, r)
	}
	if f.Lost {
		panic(http.ErrAbortHandler)
	}
}

// answer buffers a response until it is complete.
type answer struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (h *answer) WriteHeader(status int) {
	if h.status == 0 {
		h.status = status
	}
}

func (h *answer) Write(p []byte) (int, error) {
	h.WriteHeader(http.StatusOK)
	return h.body.Write(p)
}

func (h *answer) send() {
	h.WriteHeader(http.StatusOK)
	h.ResponseWriter.WriteHeader(h.status)
	_, _ = h.ResponseWriter.Write(h.body.Bytes())
}

// scheme returns how a request is authenticated.
func scheme(r *http.Request) string {
	if kind, _, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok {
		return kind
	}
	for _, name := range []string{"X-Auth-Token", "Api-Token", "X-Csrf-Token", "Cookie"} {
		if r.Header.Get(name) != "" {
			return name
		}
	}
	return ""
}

func (a *Server) keep(e Exchange) {
	a.mu.Lock()
	secrets := slices.Clone(a.secrets)
	a.mu.Unlock()
	for _, s := range secrets {
		e.Target, e.Body, e.Answer = strings.ReplaceAll(e.Target, s, "***"), strings.ReplaceAll(e.Body, s, "***"), strings.ReplaceAll(e.Answer, s, "***")
	}
	a.options.Logger.Debug("request", "method", e.Method, "target", e.Target, "status", e.Status)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.log = append(a.log, e)
}

// Exchanges returns the requests so far, in the order of their responses.
func (a *Server) Exchanges() []Exchange {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.log)
}

// Forget clears the log.
func (a *Server) Forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.log = nil
}

var changing = []struct {
	name string
	form *regexp.Regexp
}{
	{"uuid", regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)},
	{"scope", regexp.MustCompile(`\b[0-9a-f]{32}\b`)},
	{"time", regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)`)},
}

// Transcript returns the log as text for a golden file. Values that differ between runs are
// replaced by names: ids, scopes, times, the simulator's address, and matches of the expressions.
func (a *Server) Transcript(also ...*regexp.Regexp) string {
	var out strings.Builder
	for _, e := range a.Exchanges() {
		fmt.Fprintf(&out, "> %s %s", e.Method, e.Target)
		if e.Auth != "" {
			fmt.Fprintf(&out, " (%s)", e.Auth)
		}
		out.WriteByte('\n')
		if e.Body != "" {
			fmt.Fprintf(&out, "> %s\n", strings.TrimSpace(e.Body))
		}
		fmt.Fprintf(&out, "< %d %s\n\n", e.Status, strings.TrimSpace(e.Answer))
	}
	text := strings.ReplaceAll(out.String(), strings.TrimPrefix(a.URL, "https://"), "{array}")
	text = strings.ReplaceAll(text, a.Mount(), "{mount}")
	for _, c := range changing {
		seen := map[string]int{}
		text = c.form.ReplaceAllStringFunc(text, func(s string) string {
			if c.name == "time" {
				return "{time}"
			}
			if seen[s] == 0 {
				seen[s] = len(seen) + 1
			}
			return fmt.Sprintf("{%s-%d}", c.name, seen[s])
		})
	}
	for _, form := range also {
		text = form.ReplaceAllString(text, "{…}")
	}
	return text
}
