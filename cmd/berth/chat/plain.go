package chat

import (
	"fmt"
	"io"
	"strings"
	"unicode"
)

// plain writes the text of a model. Characters that control a terminal or the direction of text are written as
// escapes, except for line ends and tabs.
type plain struct {
	w      io.Writer
	before func() // is called before the first write
}

// Write takes whole characters, as JSON has them.
func (p *plain) Write(text []byte) (int, error) {
	if p.before != nil {
		p.before()
		p.before = nil
	}
	var b strings.Builder
	for _, r := range string(text) {
		switch {
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case unicode.IsControl(r):
			fmt.Fprintf(&b, `\x%02x`, r)
		case unicode.In(r, unicode.Bidi_Control):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	if _, err := io.WriteString(p.w, b.String()); err != nil {
		return 0, err
	}
	return len(text), nil
}
