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

// Error is an error whose message is meant for the person who asked.
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

// Invalid says that a field of the input cannot be accepted.
func Invalid(field, format string, args ...any) *Error {
	return &Error{class: errdefs.ErrInvalidArgument, field: field, message: fmt.Sprintf(format, args...)}
}

// NotFound says that there is no such thing, or none the asker may know of.
func NotFound(what string) *Error {
	return &Error{class: errdefs.ErrNotFound, message: what + " not found"}
}

// Exists says that the value of a field is taken.
func Exists(field, format string, args ...any) *Error {
	return &Error{class: errdefs.ErrAlreadyExists, field: field, message: fmt.Sprintf(format, args...)}
}

// Forbidden says that the asker may see the thing but not do this to it.
func Forbidden(format string, args ...any) *Error {
	return &Error{class: errdefs.ErrPermissionDenied, message: fmt.Sprintf(format, args...)}
}

// Unauthenticated says that the credentials are missing, wrong or over.
func Unauthenticated(format string, args ...any) *Error {
	return &Error{class: errdefs.ErrUnauthenticated, message: fmt.Sprintf(format, args...)}
}

// Precondition says that the thing is not in a state that allows this.
func Precondition(format string, args ...any) *Error {
	return &Error{class: errdefs.ErrFailedPrecondition, message: fmt.Sprintf(format, args...)}
}

// Exhausted says that a limit is reached; name it with WithField and WithLimit.
func Exhausted(format string, args ...any) *Error {
	return &Error{class: errdefs.ErrResourceExhausted, message: fmt.Sprintf(format, args...)}
}

// TooLarge says that more bytes were sent than the limit allows.
func TooLarge(field string, limit int64) *Error {
	return Invalid(field, "is larger than the %d bytes allowed", limit).WithLimit(strconv.FormatInt(limit, 10)).WithStatus(http.StatusRequestEntityTooLarge)
}

// Changed says that the thing is not, or no longer, the one that a condition of the
// request names.
func Changed(field, format string, args ...any) *Error {
	return Precondition(format, args...).WithField(field).WithStatus(http.StatusPreconditionFailed)
}

// Full says that a disk or a limited part of it has no room.
func Full(format string, args ...any) *Error {
	return &Error{class: ErrNoSpace, message: fmt.Sprintf(format, args...)}
}

// Aborted says that someone else was faster and asking again may work.
func Aborted(format string, args ...any) *Error {
	return &Error{class: errdefs.ErrAborted, message: fmt.Sprintf(format, args...)}
}

// Unavailable says that a part of the platform cannot be reached now.
func Unavailable(format string, args ...any) *Error {
	return &Error{class: errdefs.ErrUnavailable, message: fmt.Sprintf(format, args...)}
}

// WithField names the input field the error is about.
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

// WithLimit names the limit that was met, as the asker would write it.
func (e *Error) WithLimit(limit string) *Error {
	c := *e
	c.limit = limit
	return &c
}

// WithStatus gives the HTTP answer a more exact status than the code has.
func (e *Error) WithStatus(status int) *Error {
	c := *e
	c.status = status
	return &c
}

// RetryAfter says when asking again makes sense.
func (e *Error) RetryAfter(d time.Duration) *Error {
	c := *e
	c.retry = d
	return &c
}

// WithReached lists the limits of policies that stand in the way, all of them.
func (e *Error) WithReached(list []report.LimitReached) *Error {
	c := *e
	c.reached = list
	return &c
}

// Because keeps the cause for the log; the asker does not see it.
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

// Unwrap gives errors.Is and errdefs the class, and the cause where one is kept.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.class}
	}
	return []error{e.class, e.cause}
}
