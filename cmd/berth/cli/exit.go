package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
)

// Exit codes, documented in docs/cli.md.
const (
	exitOK          = 0
	ExitGeneral     = 1
	ExitUsage       = 2
	ExitNotFound    = 3
	ExitDenied      = 4
	ExitConflict    = 5
	ExitInvalid     = 6
	ExitUnavailable = 7
	ExitOwnFailure  = 125 // run and exec: berth failed, not the command in the session
	ExitInterrupted = 130
)

// usageError is a command line that cannot be understood.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Usagef returns an error of the command line.
func Usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// BadUsage turns err into an error of the command line.
func BadUsage(err error) error { return usageError{err} }

// StatusError ends the process with an exit code and prints nothing.
type StatusError int

// Error names the exit code.
func (e StatusError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// PassesCode marks commands that exit with the code of a command inside a session, so that their
// own failures need a separate code.
const PassesCode = "passes exit code"

// finish reports an error in one line and returns the exit code.
func (a *App) finish(cmd *cobra.Command, err error) int {
	var status StatusError
	if err == nil {
		return exitOK
	}
	if errors.As(err, &status) {
		return int(status)
	}
	code := ExitCode(err)
	if cmd != nil && cmd.Annotations[PassesCode] != "" && code != ExitInterrupted {
		code = ExitOwnFailure
	}
	text := OneLine(err)
	if code := ExitCode(err); code == ExitUsage && cmd != nil && !strings.HasPrefix(text, "usage:") {
		text += " (see: " + cmd.CommandPath() + " --help)"
	}
	var refused *client.Error
	if !errors.As(err, &refused) {
		a.Note("berth: %s", text)
		return code
	}
	if len(refused.Limits) > 0 {
		a.refusedByLimits(refused)
		return code
	}
	if flag := flagOf(cmd, refused.Field); flag != "" {
		text += "; see --" + flag
	}
	a.Note("berth: %s", text)
	return code
}

// refusedByLimits lists the exceeded limits in a table, because one line would be hard to read.
func (a *App) refusedByLimits(refused *client.Error) {
	a.Note("berth: more than is allowed (request %s):", refused.RequestID)
	p := output.Printer{W: a.Err}
	if fd, ok := Terminal(a.Err); ok {
		if w, _, err := term.GetSize(fd); err == nil {
			p.Width = w
		}
	}
	_ = p.Write(overLimits(refused.Limits))
}

// fieldOf is the annotation of a flag that sets a field of another name.
const fieldOf = "field of the API"

// flagOf returns the flag that sets a field of the API, or "".
func flagOf(cmd *cobra.Command, field string) (name string) {
	for _, input := range []string{"revision.", "request.", "strategy.", "scaling."} { // inputs within those of deployments
		field = strings.TrimPrefix(field, input)
	}
	if i := strings.IndexAny(field, ".["); i >= 0 { // a nested field such as slots.cpu
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

// kebab converts passwordMinLength to password-min-length.
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

// SetsField notes the field of the API that a flag with another name sets.
func SetsField(cmd *cobra.Command, flag string, fields ...string) {
	cmd.Flags().Lookup(flag).Annotations = map[string][]string{fieldOf: fields}
}

// ExitCode is the exit code for an error.
func ExitCode(err error) int {
	switch {
	case errors.As(err, new(usageError)):
		return ExitUsage
	case errors.Is(err, context.Canceled):
		return ExitInterrupted
	case errdefs.IsUnavailable(err), errdefs.IsDeadlineExceeded(err):
		return ExitUnavailable
	case errdefs.IsNotFound(err):
		return ExitNotFound
	case errdefs.IsPermissionDenied(err), errdefs.IsUnauthorized(err):
		return ExitDenied
	case errdefs.IsAlreadyExists(err), errdefs.IsFailedPrecondition(err), errdefs.IsAborted(err), errdefs.IsConflict(err):
		return ExitConflict
	case errdefs.IsResourceExhausted(err), errdefs.IsInvalidArgument(err), errdefs.IsOutOfRange(err):
		return ExitInvalid
	}
	return ExitGeneral
}

// OneLine returns the error without the names of error classes, which only programs need.
func OneLine(err error) string {
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
