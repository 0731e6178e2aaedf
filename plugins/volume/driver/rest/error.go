package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// Error is an error response of a product, or a missing response. It has a gRPC status for the
// proxy and contains no credentials.
type Error struct {
	Method, Path string
	Status       int    // of HTTP; 0 if there was no response
	Code         string // the product's own code, "" if there is none
	Message      string // the product's message, shortened, or why there was no response
	RetryAfter   time.Duration
	As           codes.Code // the code for the proxy if Status does not determine it
}

func (e *Error) Error() string {
	parts := []string{e.Method + " " + e.Path}
	if e.Status != 0 {
		parts = append(parts, strconv.Itoa(e.Status))
	}
	if e.Code != "" {
		parts = append(parts, "code "+e.Code)
	}
	return strings.Join(append(parts, e.Message), ": ")
}

// GRPCStatus returns the status for the proxy.
func (e *Error) GRPCStatus() *status.Status {
	s := status.New(e.code(), e.Error())
	d := &pb.ErrorDetail{VendorCode: e.Code, Retryable: e.Busy(), RetryAfterMs: e.RetryAfter.Milliseconds()}
	if with, err := s.WithDetails(d); err == nil {
		return with
	}
	return s
}

// Busy reports whether the same request may succeed later.
func (e *Error) Busy() bool { return e.code() == codes.Unavailable }

func (e *Error) code() codes.Code {
	if e.As != codes.OK {
		return e.As
	}
	switch e.Status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
		return codes.InvalidArgument
	case http.StatusUnauthorized:
		return codes.Unauthenticated
	case http.StatusForbidden:
		return codes.PermissionDenied
	case http.StatusNotFound, http.StatusGone:
		return codes.NotFound
	case http.StatusInsufficientStorage:
		return codes.ResourceExhausted
	case 0, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return codes.Unavailable
	}
	if e.Status >= 500 && e.Status != http.StatusNotImplemented {
		return codes.Internal
	}
	return codes.FailedPrecondition // 405, 409, 412, 501 …
}

// IsStatus reports whether an error is a response with one of these HTTP statuses.
func IsStatus(err error, all ...int) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	for _, s := range all {
		if e.Status == s {
			return true
		}
	}
	return false
}

// Code returns the product's own code in an error, or "".
func Code(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// Failed returns the error of a job that failed according to the product.
func (c *Client) Failed(job, code, message string) error {
	return &Error{Method: "job", Path: job, Code: c.clean(code), Message: c.clean(message), As: codes.Internal}
}

// longest limits the part of a product's message that is shown.
const longest = 300

// refusal converts a response to an error.
func (c *Client) refusal(q Request, r *Response) *Error {
	explain := c.Explain
	if explain == nil {
		explain = usual
	}
	e := &Error{Method: q.method(), Path: q.Path, Status: r.Status, RetryAfter: retryAfter(r.Header)}
	e.Code, e.Message = explain(r)
	e.Code, e.Message = c.clean(e.Code), c.clean(e.Message)
	if e.Message == "" {
		e.Message = http.StatusText(r.Status)
	}
	return e
}

// silence converts a failed request to an error.
func (c *Client) silence(q Request, err error) *Error {
	var u *url.Error // its text contains the whole URL with the query
	if errors.As(err, &u) {
		err = u.Err
	}
	return &Error{Method: q.method(), Path: q.Path, Message: c.clean(err.Error()), RetryAfter: time.Second}
}

// clean returns a text as one short line without secrets.
func (c *Client) clean(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(c.hidden.Redact(text), "?")), " ")
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}

// retryAfter parses seconds or a date.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if n, err := strconv.Atoi(text); err == nil && n >= 0 {
		return min(time.Duration(min(n, 86400))*time.Second, 24*time.Hour)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(time.Until(at), 0), 24*time.Hour)
	}
	return 0
}

// usual finds code and message at the usual places.
func usual(r *Response) (code, message string) {
	var body any
	if json.Unmarshal(r.Body, &body) != nil {
		if strings.HasPrefix(r.Header.Get("Content-Type"), "text/plain") {
			return "", string(r.Body)
		}
		return "", ""
	}
	return dig(body, 0)
}

func dig(v any, depth int) (code, message string) {
	switch v := v.(type) {
	case []any:
		if len(v) > 0 {
			return dig(v[0], depth+1)
		}
	case string:
		return "", v
	case map[string]any:
		for _, k := range []string{"code", "error_code", "status_code"} {
			if code == "" && v[k] != nil {
				code = fmt.Sprint(v[k])
			}
		}
		for _, k := range []string{"message", "detail", "msg", "context"} {
			if s, ok := v[k].(string); ok && message == "" {
				message = s
			}
		}
		for _, k := range []string{"error", "errors", "status", "data"} {
			if message == "" && depth < 3 && v[k] != nil {
				inner, text := dig(v[k], depth+1)
				if message = text; code == "" {
					code = inner
				}
			}
		}
	}
	return code, message
}
