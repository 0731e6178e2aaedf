package definition

import (
	"fmt"
	"strings"
)

// Script returns actions as a script for a POSIX shell that stops at the first failure; "" without an action. Every
// text of the file is quoted, so that none of it becomes a command.
func Script(actions []Action) string {
	if len(actions) == 0 {
		return ""
	}
	b := &strings.Builder{}
	b.WriteString("set -e\n")
	for _, a := range actions {
		switch a.Kind {
		case RunCommand:
			for i, word := range a.Command {
				if i > 0 {
					b.WriteByte(' ')
				}
				b.WriteString(quote(word))
			}
			b.WriteByte('\n')
		case MakeDirectory:
			fmt.Fprintf(b, "mkdir -p -- %s\n", quote(a.Path))
		case WriteFile:
			to := ">"
			if a.Append {
				to = ">>"
			}
			fmt.Fprintf(b, "printf '%%s' %s %s %s\nchmod %s -- %s\n", quote(a.Text), to, quote(a.Path), a.Mode, quote(a.Path))
		case Log:
			fmt.Fprintf(b, "printf '%%s\\n' %s\n", quote(a.Text))
		}
	}
	return b.String()
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
