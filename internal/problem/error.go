package problem

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/report"
)

// Error is an error whose message is for the caller of the API.
type Error struct {
	class   error
	cause   error
	message string
	field   string
	limit   string
	status  int
	reached []report.LimitReached
	retry   time.Duration
}

// Invalid reports that a field of the input has a value that is not allowed.
func Invalid(field, format string, args ...any) *Error {
	return &Error{class: errdefs.ErrInvalidArgument, field: field, message: fmt.Sprintf(format, args...)}
}

// NotFound reports that an object does not exist, or that the caller cannot see it.
func NotFound(what string) *Error {
	return &Error{class: errdefs.ErrNotFound, message: what + " not found"}
}

// Exists reports that the value of a field is taken.
func Exists(field, format string, args ...any) *Error {
	return &Error{class: errdefs.ErrAlreadyExists, field: field, message: fmt.Sprintf(format, args...)}
}

// Forbidden reports that the caller can see the object but cannot do this with it.
func Forbidden(format string, args ...any) *Error {
	return &Error{class: errdefs.ErrPermissionDenied, message: fmt.Sprintf(format, args...)}
}

// Unauthenticated reports that the credentials are missing, wrong or expired.
func Unauthenticated(format string, args ...any) *Error {
	return &Error{class: errdefs.ErrUnauthenticated, message: fmt.Sprintf(format, args...)}
}

// Precondition reports that the object is not in a state that allows this.
func Precondition(format string, args ...any) *Error {
	return &Error{class: errdefs.ErrFailedPrecondition, message: fmt.Sprintf(format, args...)}
}

// Exhausted reports that a limit is reached; add it with WithField and WithLimit.
func Exhausted(format string, args ...any) *Error {
	return &Error{class: errdefs.ErrResourceExhausted, message: fmt.Sprintf(format, args...)}
}

// TooLarge reports that more bytes were sent than the limit allows.
func TooLarge(field string, limit int64) *Error {
	return Invalid(field, "is larger than the allowed %d bytes", limit).WithLimit(strconv.FormatInt(limit, 10)).WithStatus(http.StatusRequestEntityTooLarge)
}

// Changed reports that the object is not, or no longer, the one in a condition of the request.
func Changed(field, format string, args ...any) *Error {
	return Precondition(format, args...).WithField(field).WithStatus(http.StatusPreconditionFailed)
}

// Full reports that a disk, or a limited part of it, has no free space.
func Full(format string, args ...any) *Error {
	return &Error{class: ErrNoSpace, message: fmt.Sprintf(format, args...)}
}

// Aborted reports that a concurrent request was faster, and that a retry can succeed.
func Aborted(format string, args ...any) *Error {
	return &Error{class: errdefs.ErrAborted, message: fmt.Sprintf(format, args...)}
}

// Unavailable reports that a part of the platform cannot be reached now.
func Unavailable(format string, args ...any) *Error {
	return &Error{class: errdefs.ErrUnavailable, message: fmt.Sprintf(format, args...)}
}

// WithField sets the field of the input that the error is about.
func (e *Error) WithField(field string) *Error {
	c := *e
	c.field = field
	return &c
}

// Within returns err with the name of the field of the input that contains the field that
// err is about. Other errors stay as they are.
func Within(err error, field string) error {
	var p *Error
	if !errors.As(err, &p) || p.field == "" {
		return err
	}
	return p.WithField(field + "." + p.field)
}

// WithLimit sets the limit that was reached, in the spelling of the API.
func (e *Error) WithLimit(limit string) *Error {
	c := *e
	c.limit = limit
	return &c
}

// WithStatus sets an HTTP status that is more precise than that of the code.
func (e *Error) WithStatus(status int) *Error {
	c := *e
	c.status = status
	return &c
}

// RetryAfter sets when a retry makes sense.
func (e *Error) RetryAfter(d time.Duration) *Error {
	c := *e
	c.retry = d
	return &c
}

// WithReached sets the limits of policies that are reached, all of them.
func (e *Error) WithReached(list []report.LimitReached) *Error {
	c := *e
	c.reached = list
	return &c
}

// Because adds the cause, for the log; the caller does not see it.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.cause = cause
	return &c
}

func (e *Error) Error() string {
	s := e.message
	if e.field != "" {
		s = e.field + ": " + s
	}
	if e.cause != nil {
		s += ": " + e.cause.Error()
	}
	return s
}

// Unwrap returns the class for errors.Is and errdefs, and the cause if there is one.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.class}
	}
	return []error{e.class, e.cause}
}
