package cli

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/berthhq/berth/client"
)

func TestExitCodes(t *testing.T) {
	for class, want := range map[string]int{
		"INVALID_ARGUMENT": 6, "RESOURCE_EXHAUSTED": 6, "NOT_FOUND": 3, "PERMISSION_DENIED": 4, "UNAUTHENTICATED": 4,
		"ALREADY_EXISTS": 5, "FAILED_PRECONDITION": 5, "ABORTED": 5, "UNAVAILABLE": 7, "DEADLINE_EXCEEDED": 7,
		"INTERNAL": 1, "SOMETHING_NEW": 1,
	} {
		if got := ExitCode(fmt.Errorf("doing: %w", &client.Error{Code: class})); got != want {
			t.Errorf("%s: exit code %d, want %d", class, got, want)
		}
	}
	for want, err := range map[int]error{
		ExitUsage: Usagef("no"), ExitInterrupted: context.Canceled, ExitUnavailable: context.DeadlineExceeded, ExitGeneral: errors.New("x"),
	} {
		if got := ExitCode(err); got != want {
			t.Errorf("%v: exit code %d, want %d", err, got, want)
		}
	}
}

// The names of error classes are for programs, and people do not see them.
func TestOneLine(t *testing.T) {
	_, err := FindRef("project", "x\x1b[31m", []client.Ref{{Name: "a"}})
	if got, want := OneLine(err), `project "x\x1b[31m" does not exist or is not open to you; there are: a`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := OneLine(fmt.Errorf("a\nb\x07: %w", context.DeadlineExceeded)); got != "a b" {
		t.Errorf("got %q", got)
	}
}
