package main

import (
	"io"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berthhq/berth/cmd/berth/cli"
)

// TestHelpIsComplete checks the help of every command.
func TestHelpIsComplete(t *testing.T) {
	a := cli.New(strings.NewReader(""), io.Discard, io.Discard, func(string) string { return "" })
	n := 0
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		n++
		path := cmd.CommandPath()
		if cmd.Short == "" || !unicode.IsUpper(rune(cmd.Short[0])) || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: short description %q", path, cmd.Short)
		}
		for _, line := range strings.Split(cmd.Long, "\n") {
			if len(line) > 82 {
				t.Errorf("%s: a line of its help has %d characters: %s", path, len(line), line)
			}
		}
		if !cmd.Runnable() {
			t.Errorf("%s: does nothing", path)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s: --%s has no description", path, f.Name)
			}
		})
		names := map[string]bool{}
		for _, sub := range cmd.Commands() {
			for _, name := range append(sub.Aliases, sub.Name()) {
				if names[name] {
					t.Errorf("%s: has two commands %s", path, name)
				}
				names[name] = true
			}
			walk(sub)
		}
	}
	walk(a.Root(commands(a)...))
	if n < 100 {
		t.Errorf("only %d commands", n)
	}
}
