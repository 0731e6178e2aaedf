package sshd

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/berthhq/berth/agent/runner"
	"github.com/berthhq/berth/internal/shell"
)

// command returns the program and arguments of a session. A command runs in the image's shell; in
// an image without one, it is run directly if it needs no shell.
func (s *session) command(shell bool, text string) (argv []string, err error) {
	sh, noShell := runner.FindShell()
	switch {
	case shell && noShell != nil:
		return nil, fmt.Errorf("%w, so only commands, files and forwards are available", noShell)
	case shell:
		return append(sh, "-l"), nil
	}
	text = s.ownCopy(text)
	if noShell == nil {
		return append(sh, "-c", text), nil
	}
	words, err := split(text, s.conn.account.home)
	if err != nil {
		return nil, fmt.Errorf("%w, and the command needs one: %w", noShell, err)
	}
	if len(words) == 0 {
		return nil, errors.New("the command is empty")
	}
	return words, nil
}

// ownCopy replaces scp by the scp of the runner in an image without scp.
func (s *session) ownCopy(text string) string {
	args, ok := strings.CutPrefix(strings.TrimLeft(text, " "), "scp ")
	if !ok || s.conn.runner == "" {
		return text
	}
	if _, err := lookPath("scp", value(s.conn.account.env, "PATH")); err == nil {
		return text
	}
	return shell.Quote(s.conn.runner) + " scp " + args
}

// lookPath finds a program in a search path.
func lookPath(name, path string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, dir := range filepath.SplitList(path) {
		if found, err := exec.LookPath(dir + "/" + name); err == nil && dir != "" {
			return found, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, fs.ErrNotExist)
}

// split splits a command into words like a shell: quotes, backslashes, ~ and file name patterns. It
// returns an error for all other shell syntax.
func split(text, home string) ([]string, error) {
	p := splitter{home: home}
	for len(text) > 0 {
		var err error
		if text, err = p.next(text); err != nil {
			return nil, err
		}
	}
	p.end()
	return p.words, nil
}

// splitter collects the characters of a word twice: as text, and as a pattern in which quoted
// characters have no special meaning.
type splitter struct {
	home          string
	words         []string
	text, pattern strings.Builder
	open, match   bool
}

// next reads one element from the text and returns the rest.
func (p *splitter) next(text string) (rest string, err error) {
	switch c := text[0]; c {
	case ' ', '\t', '\n':
		p.end()
		return text[1:], nil
	case '\'':
		quoted, rest, ok := strings.Cut(text[1:], "'")
		if !ok {
			return "", errors.New("a quote is not closed")
		}
		p.add(quoted, true)
		return rest, nil
	case '"':
		return p.double(text[1:])
	case '\\':
		if len(text) == 1 {
			return "", errors.New("it ends with a backslash")
		}
		p.add(text[1:2], true)
		return text[2:], nil
	case '|', '&', ';', '<', '>', '(', ')', '$', '`', '#', '{', '!':
		return "", fmt.Errorf("it uses %q", c)
	case '~':
		if !p.open && (len(text) == 1 || text[1] == '/' || text[1] == ' ') {
			p.add(p.home, true)
			return text[1:], nil
		}
	case '*', '?', '[':
		p.match = true
	}
	p.add(text[:1], false)
	return text[1:], nil
}

// double reads the rest of a double-quoted text.
func (p *splitter) double(text string) (rest string, err error) {
	p.add("", true)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return text[i+1:], nil
		case c == '$' || c == '`':
			return "", fmt.Errorf("it uses %q", c)
		case c == '\\' && i+1 < len(text) && strings.IndexByte("\"\\$`", text[i+1]) >= 0:
			i++
		}
		p.add(text[i:i+1], true)
	}
	return "", errors.New("a quote is not closed")
}

func (p *splitter) add(text string, quoted bool) {
	p.open = true
	p.text.WriteString(text)
	for _, c := range []byte(text) {
		if quoted && strings.IndexByte(`*?[\`, c) >= 0 {
			p.pattern.WriteByte('\\')
		}
		p.pattern.WriteByte(c)
	}
}

// end completes a word. A pattern that matches no file is kept as it is.
func (p *splitter) end() {
	if !p.open {
		return
	}
	found := []string{p.text.String()}
	if p.match {
		if files, err := filepath.Glob(p.pattern.String()); err == nil && len(files) > 0 {
			found = files
		}
	}
	p.words = append(p.words, found...)
	p.text.Reset()
	p.pattern.Reset()
	p.open, p.match = false, false
}
