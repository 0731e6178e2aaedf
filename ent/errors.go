package ent

import (
	"errors"
	"strings"
)

// The generated errors take the classes of errdefs, so that callers can distinguish
// them without importing ent, and their messages say what is wrong.

// NotFound is the mark that errdefs.IsNotFound looks for.
func (*NotFoundError) NotFound() {}

// Explain names the missing entity.
func (e *NotFoundError) Explain() (message, field string) {
	return strings.ReplaceAll(e.label, "_", " ") + " not found", ""
}

// InvalidParameter is the mark that errdefs.IsInvalidArgument looks for.
func (*ValidationError) InvalidParameter() {}

// Explain names the field; the generated text around it is for programmers.
func (e *ValidationError) Explain() (message, field string) {
	message = "is missing"
	for cause := errors.Unwrap(e.err); cause != nil; cause = errors.Unwrap(cause) {
		message = cause.Error()
	}
	parts := strings.Split(e.Name, "_")
	for i, p := range parts {
		if i > 0 && p != "" {
			parts[i] = strings.ToUpper(p[:1]) + p[1:]
		}
	}
	return message, strings.Join(parts, "")
}
