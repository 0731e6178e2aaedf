package server

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/berthhq/berth/graph/answer"
)

const (
	typeJSON     = "application/json"
	typeResponse = "application/graphql-response+json"
)

// readBody is a body that gate has read and decoded.
type readBody struct {
	io.Reader
	params *graphql.RawParams
}

// Close implements io.Closer.
func (readBody) Close() error { return nil }

// post is gqlgen's transport.POST for bodies that gate has read. It writes the data unchanged,
// since encoding/json would validate and copy it.
type post struct{ transport.POST }

// Do implements graphql.Transport.
func (p post) Do(w http.ResponseWriter, r *http.Request, exec graphql.GraphExecutor) {
	body, ok := r.Body.(*readBody)
	if !ok {
		p.POST.Do(w, r, exec)
		return
	}
	answerType := answerTypeOf(r.Header.Get("Accept"))
	w.Header().Set("Content-Type", answerType)
	now := graphql.Now()
	body.params.Headers, body.params.ReadTime = r.Header, graphql.TraceTiming{Start: now, End: now}
	op, errs := exec.CreateOperationContext(r.Context(), body.params)
	if errs != nil {
		resp := exec.DispatchError(graphql.WithOperationContext(r.Context(), op), errs)
		send(w, statusOf(errs, answerType), resp)
		return
	}
	answers, ctx := exec.DispatchOperation(r.Context(), op)
	send(w, http.StatusOK, answers(ctx))
}

// answerTypeOf returns the type of the answer that the header Accept prefers.
func answerTypeOf(accept string) string {
	if accept == "" {
		return typeJSON
	}
	for part := range strings.SplitSeq(accept, ",") {
		switch name, _, _ := mime.ParseMediaType(part); name {
		case "*/*", "application/*", typeJSON:
			return typeJSON
		case typeResponse:
			return typeResponse
		}
	}
	return typeResponse
}

// statusOf returns the status of an answer to an operation that did not run.
func statusOf(errs gqlerror.List, answerType string) int {
	switch {
	case errcode.GetErrorKind(errs) != errcode.KindProtocol:
		return http.StatusOK
	case answerType == typeResponse:
		return http.StatusBadRequest
	}
	return http.StatusUnprocessableEntity
}

// send writes the whole answer at once, with its length.
func send(w http.ResponseWriter, status int, resp *graphql.Response) {
	answer.Buffered(func(buf *bytes.Buffer) {
		if resp != nil && resp.Data != nil && len(resp.Errors) == 0 && len(resp.Extensions) == 0 && resp.HasNext == nil {
			buf.WriteString(`{"data":`)
			buf.Write(resp.Data)
			buf.WriteByte('}')
		} else if err := json.NewEncoder(buf).Encode(resp); err != nil {
			panic(err) // the server answers with an internal error
		}
		w.Header().Set("Content-Length", strconv.Itoa(buf.Len()))
		w.WriteHeader(status)
		_, _ = w.Write(buf.Bytes()) // the client may have disconnected
	})
}
