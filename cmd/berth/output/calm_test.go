package output

import (
	"bytes"
	"testing"
)

func TestCalm(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"text":               {"hello\tworld\r\n", "hello\tworld\r\n"},
		"colours":            {"\x1b[1;38;5;196mred\x1b[0m\x1b[m", "\x1b[1;38;5;196mred\x1b[0m\x1b[m"},
		"colours of 24 bits": {"\x1b[38:2::255:0:0mred", "\x1b[38:2::255:0:0mred"},
		"clipboard":          {"a\x1b]52;c;ZXZpbA==\x07b", "ab"},
		"clipboard, ST":      {"a\x1b]52;c;ZXZpbA==\x1b\\b", "ab"},
		"title":              {"a\x1b]0;pwned\x07b", "ab"},
		"clear screen":       {"a\x1b[2J\x1b[Hb", "ab"},
		"another screen":     {"\x1b[?1049hx\x1b[?1049l", "x"},
		"keyboard mode":      {"\x1b[>4;2mx", "x"},
		"device strings":     {"\x1bPq#0\x1b\\x\x1b_G\x1b\\\x1b^p\x1b\\y", "xy"},
		"character set":      {"\x1b(0x\x1b#8y", "xy"},
		"reset":              {"\x1bcx", "x"},
		"8-bit, in UTF-8":    {"\u009b2Jx\u009d52;c;eA==\u009cy", "xy"},
		"8-bit, raw":         {"\x9b2Jx", "\ufffd2Jx"},
		"bell, back":         {"a\x07\x08b\x7f", "ab"},
		"other direction":    {"a\u202eb", "ab"},
		"characters":         {"日本語 ✓ 👍", "日本語 ✓ 👍"},
		"an open string":     {"a\x1b]0;never ends\nb", "a\nb"},
		"a long colour":      {"\x1b[" + string(bytes.Repeat([]byte("1;"), 100)) + "mx", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			for size := 1; size <= len(c.in); size++ {
				var got bytes.Buffer
				w := NewCalm(&got)
				for rest := []byte(c.in); len(rest) > 0; {
					n := min(size, len(rest))
					if _, err := w.Write(rest[:n]); err != nil {
						t.Fatal(err)
					}
					rest = rest[n:]
				}
				if got.String() != c.want {
					t.Fatalf("in pieces of %d: %q, want %q", size, got.String(), c.want)
				}
			}
		})
	}
}
