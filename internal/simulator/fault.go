package simulator

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Fault is a failure of requests.
type Fault struct {
	Method string // empty = any
	Path   string // prefix of the request's path
	Skip   int    // number of such requests that succeed before
	Times  int    // number of requests that fail; 0 = until it is removed

	// Delay precedes everything else.
	Delay time.Duration
	// Status replaces the product's response; 0 lets the product respond.
	Status     int
	RetryAfter time.Duration // header of the response; 0 = none
	Body       string        // of the response; empty = the product's error for the status
	// Echo makes the response repeat the request's credentials in each of its texts.
	Echo bool
	// Expire ends every token first, so that the product does not accept its client any longer.
	Expire bool
	// Drop closes the connection without a response; Lost does so after the product has processed
	// the request.
	Drop, Lost bool
}

type fault struct {
	Fault
	seen int
}

// Inject adds a fault. If several faults match a request, the first one applies.
func (a *Server) Inject(f Fault) (remove func()) {
	one := &fault{Fault: f}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.faults = append(a.faults, one)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.faults = slices.DeleteFunc(a.faults, func(other *fault) bool { return other == one })
	}
}

// hit returns the fault that applies to a request.
func (a *Server) hit(r *http.Request) Fault {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, f := range a.faults {
		if f.Method != "" && f.Method != r.Method || !strings.HasPrefix(r.URL.Path, f.Path) {
			continue
		}
		f.seen++
		if f.seen > f.Skip && (f.Times == 0 || f.seen <= f.Skip+f.Times) {
			return f.Fault
		}
	}
	return Fault{}
}

// misbehave applies a fault, and reports whether the product must respond.
func (a *Server) misbehave(w http.ResponseWriter, r *http.Request, f Fault) bool {
	if f.Delay > 0 {
		select {
		case <-time.After(f.Delay):
		case <-r.Context().Done():
		case <-a.ctx.Done():
		}
	}
	if f.Expire {
		a.mu.Lock()
		all := slices.Clone(a.tokens)
		a.mu.Unlock()
		for _, t := range all {
			t.End()
		}
	}
	if f.Drop {
		panic(http.ErrAbortHandler)
	}
	if f.Status == 0 {
		return true
	}
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((f.RetryAfter+time.Second-1)/time.Second)))
	}
	if p, ok := a.product.(ErrorFormatter); ok && f.Body == "" {
		answer := p.Refusal(f.Status)
		if f.Echo {
			answer = repeat(answer, a.proof(r))
		}
		JSON(w, f.Status, answer)
		return false
	}
	if json.Valid([]byte(f.Body)) {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(f.Status)
	_, _ = w.Write([]byte(f.Body))
	return false
}

// Secrets returns all secrets of the simulator: those in its files, and the tokens that it has
// issued.
func (a *Server) Secrets() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.secrets)
}

// proof returns the secrets of the simulator that a request contains, as they were sent.
func (a *Server) proof(r *http.Request) string {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	sent := fmt.Sprint(r.Header, string(body))
	kind, basic, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	plain, err := base64.StdEncoding.DecodeString(basic)
	if kind == "Basic" && err == nil {
		sent += string(plain)
	}
	var out []string
	for _, s := range a.Secrets() {
		if strings.Contains(sent, s) {
			out = append(out, s)
		}
	}
	return strings.Join(append(out, r.Header.Get("Authorization")), " ") // the longest last, because messages are truncated
}

// repeat appends a text to every text of a response.
func repeat(answer any, text string) any {
	raw, err := json.Marshal(answer)
	if err != nil {
		return answer
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return answer
	}
	return behind(v, text)
}

func behind(v any, text string) any {
	switch v := v.(type) {
	case string:
		return v + " " + text
	case []any:
		for i := range v {
			v[i] = behind(v[i], text)
		}
	case map[string]any:
		for k := range v {
			v[k] = behind(v[k], text)
		}
	}
	return v
}
