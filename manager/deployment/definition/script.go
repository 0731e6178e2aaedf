package definition

import (
	"fmt"
	"strings"

	"github.com/berthhq/berth/internal/shell"
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
				b.WriteString(shell.Quote(word))
			}
			b.WriteByte('\n')
		case MakeDirectory:
			fmt.Fprintf(b, "mkdir -p -- %s\n", shell.Quote(a.Path))
		case WriteFile:
			to := ">"
			if a.Append {
				to = ">>"
			}
			fmt.Fprintf(b, "printf '%%s' %s %s %s\nchmod %s -- %s\n", shell.Quote(a.Text), to, shell.Quote(a.Path), a.Mode, shell.Quote(a.Path))
		case Log:
			fmt.Fprintf(b, "printf '%%s\\n' %s\n", shell.Quote(a.Text))
		}
	}
	return b.String()
}
