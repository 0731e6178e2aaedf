package main

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/berthhq/berth/cmd/berth/cli"
)

// TestDocumentedCommandsAreThere parses every berth command line that stands alone in docs/cli.md.
func TestDocumentedCommandsAreThere(t *testing.T) {
	doc, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	n, code := 0, false
	for _, line := range strings.Split(string(doc), "\n") {
		if strings.HasPrefix(line, "```") {
			code = !code
			continue
		}
		line = strings.TrimPrefix(line, "$ ")
		if !code || !strings.HasPrefix(line, "berth ") {
			continue
		}
		n++
		args := shellWords(line)[1:]
		a := cli.New(strings.NewReader(""), io.Discard, io.Discard, func(string) string { return "" })
		root := a.Root(commands(a)...)
		cmd, rest, err := root.Find(args)
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err == nil {
			err = cmd.ValidateArgs(cmd.Flags().Args())
		}
		if err != nil || !cmd.Runnable() || cmd.HasSubCommands() {
			t.Errorf("%s: %v", line, err)
		}
	}
	if n < 25 {
		t.Errorf("only %d command lines found", n)
	}
}

// shellWords splits a line as a shell does, up to a comment or a redirection.
func shellWords(line string) (words []string) {
	var word strings.Builder
	var quote rune
	flush := func() {
		if word.Len() > 0 {
			words = append(words, word.String())
			word.Reset()
		}
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote = r
		case r == '#' || r == '<' || r == '>' || r == ';' || r == '|':
			flush()
			return words
		case r == ' ':
			flush()
		default:
			word.WriteRune(r)
		}
	}
	flush()
	return words
}
