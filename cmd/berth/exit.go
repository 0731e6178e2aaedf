package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"
)

// Exit codes, documented in docs/cli.md.
const (
	exitOK          = 0
	exitGeneral     = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitDenied      = 4
	exitConflict    = 5
	exitInvalid     = 6
	exitUnavailable = 7
	exitOwnFailure  = 125 // run and exec: the command did not get its say
	exitInterrupted = 130
)

// usageError is a command line that cannot be understood.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// statusError ends the process with a code and without a word.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// passesCode marks commands that end with the code of a command inside a
// session, so that their own failures need a code apart.
const passesCode = "passes exit code"

// finish reports an error in one line and returns the exit code.
func (a *app) finish(cmd *cobra.Command, err error) int {
	var status statusError
	if err == nil {
		return exitOK
	}
	if errors.As(err, &status) {
		return int(status)
	}
	code := exitCode(err)
	if cmd != nil && cmd.Annotations[passesCode] != "" && code != exitInterrupted {
		code = exitOwnFailure
	}
	text := oneLine(err)
	if code := exitCode(err); code == exitUsage && cmd != nil && !strings.HasPrefix(text, "usage:") {
		text += " (see: " + cmd.CommandPath() + " --help)"
	}
	a.note("berth: %s", text)
	return code
}

func exitCode(err error) int {
	switch {
	case errors.As(err, new(usageError)):
		return exitUsage
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errdefs.IsUnavailable(err), errdefs.IsDeadlineExceeded(err):
		return exitUnavailable
	case errdefs.IsNotFound(err):
		return exitNotFound
	case errdefs.IsPermissionDenied(err), errdefs.IsUnauthorized(err):
		return exitDenied
	case errdefs.IsAlreadyExists(err), errdefs.IsFailedPrecondition(err), errdefs.IsAborted(err), errdefs.IsConflict(err):
		return exitConflict
	case errdefs.IsResourceExhausted(err), errdefs.IsInvalidArgument(err), errdefs.IsOutOfRange(err):
		return exitInvalid
	}
	return exitGeneral
}

// oneLine is the error without the names of classes that only programs need.
func oneLine(err error) string {
	if errors.Is(err, context.Canceled) {
		return "interrupted"
	}
	text := output.Clean(err.Error())
	for _, class := range []error{
		errdefs.ErrInvalidArgument, errdefs.ErrNotFound, errdefs.ErrAlreadyExists, errdefs.ErrPermissionDenied,
		errdefs.ErrUnauthenticated, errdefs.ErrFailedPrecondition, errdefs.ErrResourceExhausted, errdefs.ErrAborted,
		errdefs.ErrOutOfRange, errdefs.ErrUnavailable, errdefs.ErrInternal, errdefs.ErrUnknown, context.DeadlineExceeded,
	} {
		text = strings.TrimSuffix(text, ": "+class.Error())
	}
	return text
}
