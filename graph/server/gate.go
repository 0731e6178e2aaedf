package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler/transport"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/requestid"
	"github.com/berthhq/berth/internal/viewer"
)

// gate runs before the transports: it reads the body, rejects requests that no transport
// accepts, and hides the schema from clients that are not logged in.
func gate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if r.Header.Get("Upgrade") != "" {
			next.ServeHTTP(w, r)
			return
		}
		if !(transport.POST{}).Supports(r) {
			problem.WriteHTTP(w, r, problem.Invalid("", "send a POST with a body of application/json"))
			return
		}
		v := viewer.From(r.Context())
		stranger := v == nil || v.IsAnonymous()
		err := readable(w, r)
		switch {
		case tooLarge(err):
			problem.WriteHTTP(w, r, err)
		case err != nil && stranger:
			refuseStranger(w, r)
		case err != nil:
			p, _ := problem.From(err)
			writeError(w, r, http.StatusBadRequest, p.Code, p.Message)
		case stranger:
			asStranger(w, r, next)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// readable returns the reason why a request is not a GraphQL request. It stores the decoded
// body for the post transport, and keeps the body readable. Bodies that are too large are
// rejected by their status, without reading them.
func readable(w http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	switch {
	case tooLarge(err):
		return err
	case err != nil:
		return problem.Invalid("", "the body is shorter than its Content-Length").Because(err)
	}
	in := json.NewDecoder(bytes.NewReader(body))
	in.UseNumber() // numbers that are too large for their type get an error with their path
	params := &graphql.RawParams{}
	if err := in.Decode(params); err != nil {
		return problem.Invalid("", "the body is not a JSON object with the text query and the object variables").Because(err)
	}
	r.Body = &readBody{bytes.NewReader(body), params}
	return nil
}

func tooLarge(err error) bool {
	var big *http.MaxBytesError
	return errors.As(err, &big)
}

// refuseStranger sends the same answer to all clients that are not logged in, whatever they
// requested.
func refuseStranger(w http.ResponseWriter, r *http.Request) {
	writeError(w, r, http.StatusOK, problem.CodeUnauthenticated, "log in first")
}

// writeError answers with one GraphQL error.
func writeError(w http.ResponseWriter, r *http.Request, status int, code, message string) {
	ext := map[string]any{"code": code}
	if id := requestid.From(r.Context()); id != "" {
		ext["requestId"] = id
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Del("Content-Length")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{ // the client may have disconnected
		"data":   nil,
		"errors": []any{map[string]any{"message": message, "extensions": ext}},
	})
}

// asStranger answers requests for public fields. Other errors than those of a resolver come
// from the text of the operation, and would reveal the schema.
func asStranger(w http.ResponseWriter, r *http.Request, next http.Handler) {
	kept := &keptAnswer{header: http.Header{}, status: http.StatusOK}
	r.Header.Del("Accept") // clients that are not logged in get no stream
	next.ServeHTTP(kept, r)
	var answer struct {
		Errors []struct{ Path []any }
	}
	if err := json.Unmarshal(kept.body.Bytes(), &answer); err != nil || len(answer.Errors) > 0 && len(answer.Errors[0].Path) == 0 {
		refuseStranger(w, r)
		return
	}
	for name, values := range kept.header {
		w.Header()[name] = values
	}
	w.WriteHeader(kept.status)
	_, _ = w.Write(kept.body.Bytes())
}

// keptAnswer buffers an answer until it is decided whether it can be sent.
type keptAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (k *keptAnswer) Header() http.Header         { return k.header }
func (k *keptAnswer) WriteHeader(status int)      { k.status = status }
func (k *keptAnswer) Write(b []byte) (int, error) { return k.body.Write(b) }
