package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
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

// badUsage makes an error of the command line of err.
func badUsage(err error) error { return usageError{err} }

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
	var refused *client.Error
	if !errors.As(err, &refused) {
		a.note("berth: %s", text)
		return code
	}
	if len(refused.Limits) > 0 {
		a.refusedByLimits(refused)
		return code
	}
	if flag := flagOf(cmd, refused.Field); flag != "" {
		text += "; see --" + flag
	}
	a.note("berth: %s", text)
	return code
}

// refusedByLimits lists what stands in the way; in one line no one could read
// it.
func (a *app) refusedByLimits(refused *client.Error) {
	a.note("berth: more than is allowed (request %s):", refused.RequestID)
	p := output.Printer{W: a.err}
	if fd, ok := terminal(a.err); ok {
		if w, _, err := term.GetSize(fd); err == nil {
			p.Width = w
		}
	}
	_ = p.Write(overLimits(refused.Limits))
}

// fieldOf marks a flag that sets a field of another name.
const fieldOf = "field of the API"

// flagOf is the flag that sets a field of the API, "" when there is none.
func flagOf(cmd *cobra.Command, field string) (name string) {
	if i := strings.IndexAny(field, ".["); i >= 0 { // a part of it, as in slots.cpu
		field = field[:i]
	}
	if cmd == nil || field == "" {
		return ""
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name == kebab(field) || slices.Contains(f.Annotations[fieldOf], field) {
			name = f.Name
		}
	})
	return name
}

// kebab turns passwordMinLength into password-min-length.
func kebab(field string) string {
	var b strings.Builder
	for _, r := range field {
		if unicode.IsUpper(r) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// sets marks the field of the API that a flag sets under another name.
func sets(cmd *cobra.Command, flag string, fields ...string) {
	cmd.Flags().Lookup(flag).Annotations = map[string][]string{fieldOf: fields}
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
