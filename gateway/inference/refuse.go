package inference

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
)

// Limit is the error of a limit that ends with time, such as requests per second.
type Limit struct {
	Message string
	After   time.Duration // until the next request is possible
}

func (l *Limit) Error() string { return l.Message }

// Is reports whether the target is the class of this error, ResourceExhausted.
func (l *Limit) Is(target error) bool { return target == errdefs.ErrResourceExhausted }

// Unavailable is the error of a request that could not be checked, such as while a store is away.
type Unavailable struct {
	Message string
	Err     error
}

func (u *Unavailable) Error() string { return u.Message }

// Unwrap returns the cause, which clients do not see.
func (u *Unavailable) Unwrap() error { return u.Err }

// Refuse answers with an error, as a Router does for the errors of Models.
func Refuse(rw http.ResponseWriter, err error) { refuseError(rw, err) }

// seconds returns the time to wait as Retry-After has it, in whole seconds.
func (l *Limit) seconds() string { return strconv.Itoa(max(1, int(math.Ceil(l.After.Seconds())))) }

// refuseError answers with an error of a class.
func refuseError(rw http.ResponseWriter, err error) {
	f := failureOf(err)
	if f.retryAfter != "" {
		rw.Header().Set("Retry-After", f.retryAfter)
	}
	if f.final {
		rw.Header().Set("X-Should-Retry", "false") // OpenAI's clients retry every 429 otherwise
	}
	refuse(rw, f.status, f.code, f.message)
}

// failure is how an error is shown to clients.
type failure struct {
	status        int
	code, message string
	retryAfter    string // in seconds; "" = not said
	final         bool   // a retry is pointless
}

func failureOf(err error) failure {
	var (
		limit       *Limit
		unavailable *Unavailable
	)
	switch {
	case errors.As(err, &unavailable):
		return failure{status: http.StatusServiceUnavailable, code: "unavailable", message: unavailable.Message, retryAfter: "1"}
	case errors.As(err, &limit):
		return failure{status: http.StatusTooManyRequests, code: "rate_limit_exceeded", message: limit.Message, retryAfter: limit.seconds()}
	case errors.Is(err, errTooLarge):
		return failure{status: http.StatusRequestEntityTooLarge, code: "request_too_large", message: messageOf(err)}
	case errdefs.IsUnauthorized(err):
		return failure{status: http.StatusUnauthorized, code: "invalid_api_key", message: "the key is not valid"}
	case errdefs.IsPermissionDenied(err):
		return failure{status: http.StatusForbidden, code: "api_not_allowed", message: messageOf(err)}
	case errdefs.IsNotFound(err):
		return failure{status: http.StatusNotFound, code: "model_not_found", message: messageOf(err)}
	case errdefs.IsResourceExhausted(err):
		return failure{status: http.StatusTooManyRequests, code: "insufficient_quota", message: messageOf(err), final: true}
	case errdefs.IsInvalidArgument(err):
		return failure{status: http.StatusBadRequest, code: "invalid_request_error", message: messageOf(err)}
	case errors.Is(err, errFull):
		return failure{status: http.StatusTooManyRequests, code: "too_many_waiting", message: messageOf(err), retryAfter: "5"}
	case errors.Is(err, errEnded):
		return failure{status: http.StatusNotFound, code: "model_not_found", message: errEnded.Error()}
	case errors.Is(err, errNoReplica):
		return failure{status: http.StatusServiceUnavailable, code: "no_replica", message: errNoReplica.Error(), retryAfter: "1"}
	case errors.Is(err, errCut):
		return failure{status: http.StatusBadGateway, code: "engine_error", message: messageOf(err)}
	}
	return failure{status: http.StatusBadGateway, code: "engine_error", message: "the engine did not answer"}
}

// messageOf returns the text of an error without that of its class, which the status says.
func messageOf(err error) string {
	text := err.Error()
	for _, class := range []error{errdefs.ErrInvalidArgument, errdefs.ErrNotFound, errdefs.ErrPermissionDenied, errdefs.ErrResourceExhausted} {
		text = strings.TrimSuffix(text, ": "+class.Error())
	}
	return text
}

func refuse(rw http.ResponseWriter, status int, code, message string) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	_, _ = rw.Write(errorText(code, message))
}

// errorText returns an error as OpenAI's and Anthropic's APIs do, so that their clients show the message.
func errorText(code, message string) []byte {
	text, _ := json.Marshal(map[string]any{
		"type": "error", "error": map[string]any{"message": message, "type": code, "code": code, "param": nil},
	})
	return append(text, '\n')
}
