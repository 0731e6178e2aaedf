package chat

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// message is one message of a conversation, as in the API of OpenAI.
type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// talk is a conversation with a model.
type talk struct {
	settings
	app             *cli.App
	url, key, model string
	messages        []message
	prices          *client.TokenPrices // nil: unknown
	currency        string
}

// lines returns the lines of a reader. The channel is closed at the end.
func lines(r io.Reader) <-chan string {
	out := make(chan string)
	go func() { // ends with the process: a read from a terminal cannot be cancelled
		defer close(out)
		for s := bufio.NewScanner(r); s.Scan(); {
			out <- s.Text()
		}
	}()
	return out
}

// converse answers every line until there are no more. A signal stops the current answer.
func (t *talk) converse(ctx context.Context, in <-chan string, signals <-chan os.Signal) error {
	t.app.Note("Chat with %s. Ctrl-C stops an answer, Ctrl-D ends.", t.model)
	for {
		fmt.Fprint(t.app.Err, "> ")
		select {
		case <-signals:
			fmt.Fprintln(t.app.Err)
			continue
		case text, more := <-in:
			if !more {
				fmt.Fprintln(t.app.Err)
				return nil
			}
			if text = strings.TrimSpace(text); text == "" {
				continue
			}
			err := t.interruptible(ctx, signals, func(ctx context.Context) error { return t.say(ctx, text) })
			if err == cli.StatusError(cli.ExitInterrupted) {
				fmt.Fprintln(t.app.Err, "\n(stopped)")
			} else if err != nil {
				t.app.Note("berth: %s", cli.OneLine(err))
			}
		}
	}
}

// interruptible runs do and cancels it at a signal. It waits until do has returned.
func (t *talk) interruptible(ctx context.Context, signals <-chan os.Signal, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	select {
	case err := <-done:
		return err
	case <-signals:
		cancel()
		<-done
		return cli.StatusError(cli.ExitInterrupted)
	}
}

// say sends a message and prints the answer. What was said before stays part of the conversation; a message
// without an answer does not.
func (t *talk) say(ctx context.Context, text string) error {
	status := t.app.StatusLine(false)
	defer status.Clear()
	p := t.app.Printer()
	var out io.Writer = io.Discard
	if !p.Machine() {
		out = &plain{w: t.app.Out, before: status.Clear}
	}
	asked := append(t.messages[:len(t.messages):len(t.messages)], message{"user", text})
	got, err := t.stream(ctx, asked, out, func(comment string) { status.Set(output.Clean(t.model + ": " + comment)) })
	if got != nil && got.Answer != "" {
		t.messages = append(asked, message{"assistant", got.Answer})
		if !p.Machine() {
			fmt.Fprintln(t.app.Out)
		}
	}
	if err != nil {
		return err
	}
	if t.verbose {
		t.app.Note("%s", got.summary()+t.cost(got.Usage))
	}
	if p.Machine() {
		return p.Print(got, nil)
	}
	return nil
}
