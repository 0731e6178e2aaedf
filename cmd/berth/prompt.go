package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/berthhq/berth/cmd/berth/output"
	"golang.org/x/term"
)

// ask prompts for a line; instead names what to use without a terminal.
func (a *app) ask(ctx context.Context, prompt, instead string) (string, error) {
	if _, ok := terminal(a.in); !ok {
		return "", usagef("no terminal to ask on; use %s", instead)
	}
	fmt.Fprint(a.err, prompt)
	return interruptible(ctx, func() (string, error) { return readLine(a.in) })
}

// askSecret prompts for a line that is not shown; instead names what to use
// without a terminal.
func (a *app) askSecret(ctx context.Context, prompt, instead string) (string, error) {
	fd, ok := terminal(a.in)
	if !ok {
		return "", usagef("no terminal to ask on; use %s", instead)
	}
	before, err := term.GetState(fd)
	if err != nil {
		return "", fmt.Errorf("read password: %w", err)
	}
	fmt.Fprint(a.err, prompt)
	secret, err := interruptible(ctx, func() (string, error) {
		b, err := term.ReadPassword(fd)
		return string(b), err
	})
	fmt.Fprintln(a.err)
	if err != nil {
		_ = term.Restore(fd, before) // an interrupted read leaves the echo off
		return "", fmt.Errorf("read password: %w", err)
	}
	return secret, nil
}

// confirm has the name of what is to go typed again, unless yes is set. Without
// a terminal it must be.
func (a *app) confirm(ctx context.Context, what, name string, yes bool) error {
	if yes {
		return nil
	}
	if _, ok := terminal(a.in); !ok {
		return usagef("no terminal to ask on; use --yes to remove %s %s", what, name)
	}
	typed, err := a.ask(ctx, fmt.Sprintf("Type %s to remove this %s permanently: ", output.Clean(name), what), "--yes")
	if typed != name && ctx.Err() == nil {
		return usagef("that is not its name; nothing was removed")
	}
	return err
}

// mayDelete asks before something is deleted, unless that was said to be so.
func (a *app) mayDelete(ctx context.Context, what string, yes bool) error {
	return a.sure(ctx, "Delete "+what+"?", "delete "+what, "nothing was done", yes)
}

// sure asks a question before something is done, unless --yes said to do it. otherwise is
// the error of those who do not agree.
func (a *app) sure(ctx context.Context, question, do, otherwise string, yes bool) error {
	if yes {
		return nil
	}
	if _, ok := terminal(a.in); !ok {
		return usagef("no terminal to ask on; use --yes to %s", do)
	}
	agreed, err := a.agreed(ctx, question)
	if err == nil && !agreed {
		err = usagef("%s", otherwise)
	}
	return err
}

// gone reports what was removed.
func (a *app) gone(name string, err error) error {
	if err == nil && !a.print().Machine() {
		fmt.Fprintln(a.out, output.Clean(name))
	}
	return err
}

// agreed asks a question that is answered with yes or no.
func (a *app) agreed(ctx context.Context, question string) (bool, error) {
	answer, err := a.ask(ctx, question+" [y/N] ", "the flag for it")
	if errors.As(err, new(usageError)) { // just the return key
		return false, nil
	}
	return strings.EqualFold(answer, "y") || strings.EqualFold(answer, "yes"), err
}

// interruptible returns early when the context ends. The read itself cannot be
// stopped; it ends with the process, which is next.
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

func readLine(r io.Reader) (string, error) {
	line, err := bufio.NewReader(r).ReadString('\n')
	if line = strings.TrimRight(line, "\r\n"); line == "" {
		if err == nil || err == io.EOF {
			return "", usagef("nothing came on standard input")
		}
		return "", err
	}
	return line, nil
}
