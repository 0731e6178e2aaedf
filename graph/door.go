package graph

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

// door is in front of the transports: it reads the body, refuses what no transport
// takes, and tells no one without a login how the schema looks.
func door(next http.Handler) http.Handler {
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

// readable returns why a request is no GraphQL request. It leaves the body to be read
// once more, and to post what it has read. Bodies that are too large are refused by their status, unread.
func readable(w http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	switch {
	case tooLarge(err):
		return err
	case err != nil:
		return problem.Invalid("", "the body is shorter than its Content-Length").Because(err)
	}
	in := json.NewDecoder(bytes.NewReader(body))
	in.UseNumber() // what is too large for its type is said by its place
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

// refuseStranger is the one answer to those who are not logged in, whatever they
// asked for and however wrong it was.
func refuseStranger(w http.ResponseWriter, r *http.Request) {
	writeError(w, r, http.StatusOK, problem.CodeUnauthenticated, "log in first")
}

// writeError answers with one error as GraphQL has it.
func writeError(w http.ResponseWriter, r *http.Request, status int, code, message string) {
	ext := map[string]any{"code": code}
	if id := requestid.From(r.Context()); id != "" {
		ext["requestId"] = id
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Del("Content-Length")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{ // the client may be gone
		"data":   nil,
		"errors": []any{map[string]any{"message": message, "extensions": ext}},
	})
}

// asStranger answers what is open to everyone. An error that is not of a field that
// ran comes of the text of the operation, and would tell about the schema.
func asStranger(w http.ResponseWriter, r *http.Request, next http.Handler) {
	kept := &keptAnswer{header: http.Header{}, status: http.StatusOK}
	r.Header.Del("Accept") // no stream is open to strangers
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

// keptAnswer keeps an answer until it is known whether it may be sent.
type keptAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (k *keptAnswer) Header() http.Header         { return k.header }
func (k *keptAnswer) WriteHeader(status int)      { k.status = status }
func (k *keptAnswer) Write(b []byte) (int, error) { return k.body.Write(b) }
