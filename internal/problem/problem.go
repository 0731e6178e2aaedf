package problem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/report"
)

// The codes of the API, one per class.
const (
	CodeInvalidArgument    = "INVALID_ARGUMENT"
	CodeNotFound           = "NOT_FOUND"
	CodeAlreadyExists      = "ALREADY_EXISTS"
	CodePermissionDenied   = "PERMISSION_DENIED"
	CodeUnauthenticated    = "UNAUTHENTICATED"
	CodeFailedPrecondition = "FAILED_PRECONDITION"
	CodeResourceExhausted  = "RESOURCE_EXHAUSTED"
	CodeAborted            = "ABORTED"
	CodeUnavailable        = "UNAVAILABLE"
	CodeDeadlineExceeded   = "DEADLINE_EXCEEDED"
	CodeInternal           = "INTERNAL"
)

// Problem is an error in the form that the caller of the API gets.
type Problem struct {
	Code       string
	Message    string
	Field      string
	Limit      string                // as text: digits in the field's unit, or the allowed values
	Status     int                   // HTTP status, if it differs from that of the code
	Reached    []report.LimitReached // all limits of policies that are reached
	RetryAfter time.Duration
}

// explained is an error of a lower layer with a text for people: what is wrong, and in which field,
// if any.
type explained interface {
	error
	Explain() (message, field string)
}

// From converts any error to the information that the caller may have. An error of an unknown class
// becomes INTERNAL with a hidden text, and known is false: log it.
func From(err error) (p Problem, known bool) {
	code := codeOf(err)
	var own *Error
	if errors.As(err, &own) {
		return Problem{
			Code: codeOf(own.class), Message: own.message, Field: own.field, Limit: own.limit,
			Status: cmp.Or(own.status, statusOf(own.class)), Reached: own.reached, RetryAfter: own.retry,
		}, true
	}
	var big *http.MaxBytesError
	if errors.As(err, &big) {
		return Problem{Code: CodeInvalidArgument, Message: "the body is too large", Limit: fmt.Sprint(big.Limit), Status: http.StatusRequestEntityTooLarge}, true
	}
	if p, ok := fromDatabase(err); ok {
		return p, true
	}
	var e explained
	if errors.As(err, &e) && code != CodeInternal {
		message, field := e.Explain()
		return Problem{Code: code, Message: message, Field: field}, true
	}
	switch code {
	case CodeInternal:
		return Problem{Code: code, Message: "internal error"}, false
	case CodeDeadlineExceeded:
		return Problem{Code: code, Message: "the request took too long"}, true
	case CodeUnavailable:
		return Problem{Code: code, Message: "a part of the platform cannot be reached; try again later"}, true
	}
	return Problem{Code: code, Message: plain(err), Status: statusOf(err)}, true
}

// ErrNoSpace is the class of errors of a disk, or of a limited part of it, without free space. It
// is a kind of errdefs.ErrResourceExhausted.
var ErrNoSpace = fmt.Errorf("no space: %w", errdefs.ErrResourceExhausted)

// statusOf returns the HTTP status of classes whose status differs from that of their code.
func statusOf(err error) int {
	if errors.Is(err, ErrNoSpace) {
		return http.StatusInsufficientStorage
	}
	return 0
}

func codeOf(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return CodeDeadlineExceeded
	case errors.Is(err, context.Canceled), errdefs.IsAborted(err), errdefs.IsConflict(err):
		return CodeAborted
	case errdefs.IsInvalidArgument(err), errdefs.IsOutOfRange(err):
		return CodeInvalidArgument
	case errdefs.IsNotFound(err):
		return CodeNotFound
	case errdefs.IsAlreadyExists(err):
		return CodeAlreadyExists
	case errdefs.IsPermissionDenied(err):
		return CodePermissionDenied
	case errdefs.IsUnauthorized(err):
		return CodeUnauthenticated
	case errdefs.IsFailedPrecondition(err), errdefs.IsNotImplemented(err):
		return CodeFailedPrecondition
	case errdefs.IsResourceExhausted(err):
		return CodeResourceExhausted
	case errdefs.IsUnavailable(err):
		return CodeUnavailable
	}
	return CodeInternal
}

// plain returns the text of an error that wraps a class of errdefs, without the name of the class
// at its end.
func plain(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	for _, class := range []error{
		errdefs.ErrInvalidArgument, errdefs.ErrOutOfRange, errdefs.ErrNotFound, errdefs.ErrAlreadyExists,
		errdefs.ErrPermissionDenied, errdefs.ErrUnauthenticated, errdefs.ErrFailedPrecondition,
		errdefs.ErrNotImplemented, ErrNoSpace, errdefs.ErrResourceExhausted, errdefs.ErrAborted, errdefs.ErrConflict,
	} {
		if rest, ok := strings.CutSuffix(text, ": "+class.Error()); ok {
			text = rest
			break
		}
	}
	if r := []rune(text); len(r) > maxMessage {
		text = string(r[:maxMessage]) + "…"
	}
	return text
}

const maxMessage = 500
