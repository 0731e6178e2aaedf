package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
)

// Classes of errors, as the server names them.
const (
	codeInvalidArgument    = "INVALID_ARGUMENT"
	codeNotFound           = "NOT_FOUND"
	codeAlreadyExists      = "ALREADY_EXISTS"
	codePermissionDenied   = "PERMISSION_DENIED"
	codeUnauthenticated    = "UNAUTHENTICATED"
	codeFailedPrecondition = "FAILED_PRECONDITION"
	codeResourceExhausted  = "RESOURCE_EXHAUSTED"
	codeAborted            = "ABORTED"
	codeUnavailable        = "UNAVAILABLE"
	codeDeadlineExceeded   = "DEADLINE_EXCEEDED"
	codeInternal           = "INTERNAL"
)

var classes = map[string]error{
	codeInvalidArgument:    errdefs.ErrInvalidArgument,
	codeNotFound:           errdefs.ErrNotFound,
	codeAlreadyExists:      errdefs.ErrAlreadyExists,
	codePermissionDenied:   errdefs.ErrPermissionDenied,
	codeUnauthenticated:    errdefs.ErrUnauthenticated,
	codeFailedPrecondition: errdefs.ErrFailedPrecondition,
	codeResourceExhausted:  errdefs.ErrResourceExhausted,
	codeAborted:            errdefs.ErrAborted,
	codeUnavailable:        errdefs.ErrUnavailable,
	codeDeadlineExceeded:   context.DeadlineExceeded,
	codeInternal:           errdefs.ErrInternal,
}

var statusCodes = map[int]string{
	http.StatusBadRequest:            codeInvalidArgument,
	http.StatusUnauthorized:          codeUnauthenticated,
	http.StatusForbidden:             codePermissionDenied,
	http.StatusNotFound:              codeNotFound,
	http.StatusConflict:              codeAborted,
	http.StatusGone:                  codeNotFound,
	http.StatusPreconditionFailed:    codeFailedPrecondition,
	http.StatusRequestEntityTooLarge: codeResourceExhausted,
	http.StatusUnprocessableEntity:   codeInvalidArgument,
	http.StatusTooManyRequests:       codeResourceExhausted,
	http.StatusInsufficientStorage:   codeResourceExhausted,
	http.StatusBadGateway:            codeUnavailable,
	http.StatusServiceUnavailable:    codeUnavailable,
	http.StatusGatewayTimeout:        codeUnavailable,
}

// Error is a refusal by the server, or the lack of an answer. It is of the
// errdefs class that Code names.
type Error struct {
	Code    string
	Message string
	Field   string
	Limit   string
	// Limits are all limits of policies that the request exceeds.
	Limits     []LimitReached
	RequestID  string
	RetryAfter time.Duration
}

// Error returns one line: the message and, in brackets, the field, the limits and the request id.
func (e *Error) Error() string {
	var more []string
	add := func(name, value string) {
		if value != "" {
			more = append(more, name+" "+value)
		}
	}
	text := strings.Join(strings.Fields(e.Message), " ")
	if text == "" {
		text = strings.ToLower(strings.ReplaceAll(e.Code, "_", " "))
	}
	text, spoken := withSubject(e.Field, text)
	if !spoken {
		add("field", e.Field)
	}
	add("limit", e.Limit)
	if e.RetryAfter > 0 {
		add("try again in", e.RetryAfter.String())
	}
	add("request", e.RequestID)
	if len(more) > 0 {
		text += " (" + strings.Join(more, ", ") + ")"
	}
	return text
}

// withSubject puts the field before a message that continues from it.
func withSubject(field, text string) (said string, spoken bool) {
	if field != "" && lacksSubject(text) {
		return field + " " + text, true
	}
	return text, false
}

// Clause returns the error of one of several items, or "" if there is none.
func Clause(field, message *string) string {
	if message == nil {
		return ""
	}
	if field == nil {
		return *message
	}
	text, _ := withSubject(*field, *message)
	return text
}

// lacksSubject reports whether a message continues from the name of its field.
func lacksSubject(text string) bool {
	verb, _, _ := strings.Cut(text, " ")
	return slices.Contains([]string{"may", "must", "is", "has", "cannot", "needs", "takes"}, verb)
}

// Unwrap returns the errdefs class.
func (e *Error) Unwrap() error {
	if class, ok := classes[e.Code]; ok {
		return class
	}
	return errdefs.ErrUnknown
}

// GraphQLError is one entry of an answer's errors.
type GraphQLError struct {
	Message    string     `json:"message"`
	Path       []any      `json:"path,omitempty"`
	Extensions extensions `json:"extensions"`
}

type extensions struct {
	Code      string `json:"code,omitempty"`
	Field     string `json:"field,omitempty"`
	Limit     any    `json:"limit,omitempty"`
	RequestID string `json:"requestId,omitempty"`

	Limits []LimitReached `json:"limits,omitempty"`
}

// validationCodes are the codes with which a GraphQL server reports a malformed operation.
var validationCodes = map[string]string{
	"GRAPHQL_PARSE_FAILED":      codeInvalidArgument,
	"GRAPHQL_VALIDATION_FAILED": codeInvalidArgument,
	"COMPLEXITY_LIMIT_EXCEEDED": codeResourceExhausted,
}

func (g GraphQLError) err(others int) error {
	e := &Error{Code: g.Extensions.Code, Message: g.Message, Field: g.Extensions.Field, Limits: g.Extensions.Limits, RequestID: g.Extensions.RequestID}
	if code, ok := validationCodes[e.Code]; ok {
		e.Code = code
	}
	e.Limit = limitText(g.Extensions.Limit)
	if others > 0 {
		e.Message += fmt.Sprintf(", and %d more", others)
	}
	return e
}

// limitText formats a limit in plain digits. Numbers from JSON are floats, which Go would print as
// 2e+07.
func limitText(limit any) string {
	switch l := limit.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(l, 'f', -1, 64)
	}
	return fmt.Sprint(limit)
}

// problem is an RFC 9457 answer.
type problem struct {
	Title     string `json:"title"`
	Detail    string `json:"detail"`
	Code      string `json:"code"`
	RequestID string `json:"requestId"`
	Field     string `json:"field"`
	Limit     any    `json:"limit"`
}

// refusal converts an answer with an unexpected status into an error.
func refusal(resp *http.Response, body []byte) error {
	e := &Error{Code: statusCodes[resp.StatusCode], RequestID: resp.Header.Get("X-Request-Id")}
	if e.Code == "" && resp.StatusCode >= 500 {
		e.Code = codeInternal
	}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
		e.RetryAfter = time.Duration(s) * time.Second
	}
	var p problem
	if isJSON(resp) && json.Unmarshal(body, &p) == nil && (p.Code != "" || p.Detail != "" || p.Title != "") {
		e.Message = p.Detail
		if e.Message == "" {
			e.Message = p.Title
		}
		if p.Code != "" {
			e.Code = p.Code
		}
		if p.RequestID != "" {
			e.RequestID = p.RequestID
		}
		e.Field = p.Field
		e.Limit = limitText(p.Limit)
		return e
	}
	if resp.Request.Method == http.MethodHead { // its answer has no body
		e.Message = resp.Status
		return e
	}
	e.Message = fmt.Sprintf("%s://%s%s answered %s; is a Berth server there?", resp.Request.URL.Scheme, resp.Request.Host, resp.Request.URL.Path, resp.Status)
	if text := strings.TrimSpace(string(body)); strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") && text != "" {
		if len(text) > 200 {
			text = text[:200] + "…"
		}
		e.Message = fmt.Sprintf("%s: %s", resp.Status, text)
	}
	return e
}
