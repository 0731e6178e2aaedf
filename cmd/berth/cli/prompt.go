package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/term"

	"github.com/berthhq/berth/cmd/berth/output"
)

// Ask prompts for a line. The error without a terminal recommends instead.
func (a *App) Ask(ctx context.Context, prompt, instead string) (string, error) {
	if _, ok := Terminal(a.In); !ok {
		return "", Usagef("no terminal to ask on; use %s", instead)
	}
	fmt.Fprint(a.Err, prompt)
	return interruptible(ctx, func() (string, error) { return ReadLine(a.In) })
}

// AskSecret prompts for a line without echo. The error without a terminal recommends instead.
func (a *App) AskSecret(ctx context.Context, prompt, instead string) (string, error) {
	fd, ok := Terminal(a.In)
	if !ok {
		return "", Usagef("no terminal to ask on; use %s", instead)
	}
	before, err := term.GetState(fd)
	if err != nil {
		return "", fmt.Errorf("read password: %w", err)
	}
	fmt.Fprint(a.Err, prompt)
	secret, err := interruptible(ctx, func() (string, error) {
		b, err := term.ReadPassword(fd)
		return string(b), err
	})
	fmt.Fprintln(a.Err)
	if err != nil {
		_ = term.Restore(fd, before) // an interrupted read leaves the echo off
		return "", fmt.Errorf("read password: %w", err)
	}
	return secret, nil
}

// Confirm asks the user to type the name of the object that will be deleted, unless yes is set.
// Without a terminal, yes is required.
func (a *App) Confirm(ctx context.Context, what, name string, yes bool) error {
	if yes {
		return nil
	}
	if _, ok := Terminal(a.In); !ok {
		return Usagef("no terminal to ask on; use --yes to remove %s %s", what, name)
	}
	typed, err := a.Ask(ctx, fmt.Sprintf("Type %s to remove this %s permanently: ", output.Clean(name), what), "--yes")
	if typed != name && ctx.Err() == nil {
		return Usagef("that is not its name; nothing was removed")
	}
	return err
}

// ConfirmDelete asks before an object is deleted, unless yes is set.
func (a *App) ConfirmDelete(ctx context.Context, what string, yes bool) error {
	return a.ConfirmAction(ctx, "Delete "+what+"?", "delete "+what, "nothing was done", yes)
}

// ConfirmAction asks a question before an action, unless yes is set. If the user does not agree, it
// returns an error with the text otherwise.
func (a *App) ConfirmAction(ctx context.Context, question, do, otherwise string, yes bool) error {
	if yes {
		return nil
	}
	if _, ok := Terminal(a.In); !ok {
		return Usagef("no terminal to ask on; use --yes to %s", do)
	}
	agreed, err := a.Agree(ctx, question)
	if err == nil && !agreed {
		err = Usagef("%s", otherwise)
	}
	return err
}

// Removed reports the removal of an object.
func (a *App) Removed(name string, err error) error {
	if err == nil && !a.Printer().Machine() {
		fmt.Fprintln(a.Out, output.Clean(name))
	}
	return err
}

// Agree asks a question that is answered with yes or no.
func (a *App) Agree(ctx context.Context, question string) (bool, error) {
	answer, err := a.Ask(ctx, question+" [y/N] ", "the flag for it")
	if errors.As(err, new(usageError)) { // an empty line
		return false, nil
	}
	return strings.EqualFold(answer, "y") || strings.EqualFold(answer, "yes"), err
}

// interruptible returns early when the context ends. The read itself cannot be stopped: it blocks
// until the process exits, soon after.
func interruptible(ctx context.Context, read func() (string, error)) (string, error) {
	type result struct {
		text string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := read()
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// ReadLine reads one line that is not empty.
func ReadLine(r io.Reader) (string, error) {
	line, err := bufio.NewReader(r).ReadString('\n')
	if line = strings.TrimRight(line, "\r\n"); line == "" {
		if err == nil || err == io.EOF {
			return "", Usagef("nothing came on standard input")
		}
		return "", err
	}
	return line, nil
}

// AskNewPassword asks for a password twice.
func (a *App) AskNewPassword(ctx context.Context, instead string) (string, error) {
	next, err := a.AskSecret(ctx, "New password: ", instead)
	if err != nil {
		return "", err
	}
	again, err := a.AskSecret(ctx, "New password again: ", instead)
	if err == nil && again != next {
		err = Usagef("the new passwords differ")
	}
	return next, err
}

// PrintSecret prints a result in full for programs. For people, it prints the secret alone, and a
// note about it on standard error.
func (a *App) PrintSecret(v any, secret *string, note string) error {
	return a.Printer().Print(v, func() error {
		if secret == nil {
			return nil
		}
		a.Note("%s", note)
		_, err := fmt.Fprintln(a.Out, output.Clean(*secret))
		return err
	})
}
