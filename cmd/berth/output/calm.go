package output

import (
	"bytes"
	"io"
	"unicode"
	"unicode/utf8"
)

// Calm writes what a container printed to a terminal: text, line ends, tabs and colours (SGR). It
// drops all other control sequences, such as titles, the clipboard (OSC 52), cursor movements and
// cleared screens. A sequence or character can be split over several writes.
type Calm struct {
	w     io.Writer
	state calmState
	csi   []byte // collected bytes of a sequence that may be a colour
	half  []byte // first bytes of an incomplete character
	out   bytes.Buffer
}

// NewCalm returns a writer to w.
func NewCalm(w io.Writer) *Calm { return &Calm{w: w} }

type calmState int

const (
	text   calmState = iota
	escape           // after ESC
	medium           // after ESC and intermediate bytes, as of a character set
	csi              // after ESC [
	spoken           // in a string, as after ESC ], until BEL or ESC \
	ending           // in a string, after ESC
)

// maxSGR is the maximum length of a colour sequence. A longer one is dropped.
const maxSGR = 64

// Write writes the permitted part of p. It reports all of p as written.
func (c *Calm) Write(p []byte) (int, error) {
	c.out.Reset()
	rest := append(c.half, p...)
	c.half = nil
	for len(rest) > 0 {
		if !utf8.FullRune(rest) {
			c.half = bytes.Clone(rest)
			break
		}
		r, n := utf8.DecodeRune(rest)
		if r == utf8.RuneError && n == 1 {
			r = unicode.ReplacementChar // a byte of 0x80 to 0x9f would be a command to some terminals
		}
		rest = rest[n:]
		c.take(r)
	}
	if _, err := c.w.Write(c.out.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (c *Calm) take(r rune) {
	switch c.state {
	case text:
		c.plain(r)
	case escape:
		c.begin(r)
	case medium:
		if r < 0x20 || r > 0x2f {
			c.state = text
		}
	case csi:
		c.sequence(r)
	case spoken:
		switch r {
		case 0x07, 0x9c:
			c.state = text
		case 0x1b:
			c.state = ending
		case '\n': // a string without an end must not hide what follows
			c.state = text
			c.out.WriteByte('\n')
		}
	case ending:
		if c.state = spoken; r == '\\' {
			c.state = text
		}
	}
}

func (c *Calm) plain(r rune) {
	switch {
	case r == 0x1b:
		c.state = escape
	case r == 0x9b:
		c.state, c.csi = csi, c.csi[:0]
	case r == 0x90, r == 0x98, r == 0x9d, r == 0x9e, r == 0x9f:
		c.state = spoken
	case r == '\n', r == '\t', r == '\r', !unicode.IsControl(r) && !unicode.In(r, unicode.Bidi_Control):
		c.out.WriteRune(r)
	}
}

// begin handles the character after ESC.
func (c *Calm) begin(r rune) {
	switch {
	case r == '[':
		c.state, c.csi = csi, c.csi[:0]
	case r == ']', r == 'P', r == 'X', r == '^', r == '_':
		c.state = spoken
	case r >= 0x20 && r <= 0x2f:
		c.state = medium
	case r == 0x1b:
	default:
		c.state = text
	}
}

// sequence collects a control sequence and writes it if it sets colours.
func (c *Calm) sequence(r rune) {
	switch {
	case r == 0x1b:
		c.state = escape
	case r >= 0x40 && r <= 0x7e:
		if c.state = text; r == 'm' && len(c.csi) <= maxSGR && colours(c.csi) {
			c.out.WriteString("\x1b[")
			c.out.Write(c.csi)
			c.out.WriteByte('m')
		}
	case r >= 0x20 && r <= 0x3f:
		if len(c.csi) <= maxSGR {
			c.csi = append(c.csi, byte(r))
		}
	case r == '\n': // not a colour; a terminal prints the line end as well
		c.state = text
		c.out.WriteByte('\n')
	}
}

// colours reports whether the parameters are those of SGR: numbers only. ESC [ > m and similar
// sequences set modes of the keyboard.
func colours(parameters []byte) bool {
	for _, b := range parameters {
		if (b < '0' || b > '9') && b != ';' && b != ':' {
			return false
		}
	}
	return true
}
