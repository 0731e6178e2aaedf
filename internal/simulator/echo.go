package simulator

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

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
