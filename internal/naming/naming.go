// Package naming checks the names that people choose, so that no name can bring control characters,
// hidden text or a path into a log, a page or a shell.
package naming

import (
	"net"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/berthhq/berth/internal/problem"
)

// MaxName is the largest number of characters in a name.
const MaxName = 64

// Name checks the name of an object: letters, digits, space and ._- , beginning and ending with a
// letter or digit.
func Name(field, s string) error {
	if s == "" {
		return problem.Invalid(field, "must not be empty")
	}
	if len(s) > MaxName { // bytes, as the column counts
		return problem.Invalid(field, "is too long").WithLimit("64")
	}
	if !utf8.ValidString(s) {
		return problem.Invalid(field, "must be UTF-8")
	}
	first, _ := utf8.DecodeRuneInString(s)
	last, _ := utf8.DecodeLastRuneInString(s)
	if !alphanumeric(first) || !alphanumeric(last) {
		return problem.Invalid(field, "must begin and end with a letter or digit")
	}
	for _, r := range s {
		if !alphanumeric(r) && !strings.ContainsRune(" ._-", r) {
			return problem.Invalid(field, "may contain letters, digits, spaces, dots, dashes and underscores, not %q", r)
		}
	}
	return nil
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// IsVariable reports whether an environment variable can have the name.
func IsVariable(name string) bool { return variable.MatchString(name) }

// Handle checks a name that is typed into shells: lower-case ASCII letters,
// digits and ._- , beginning with a letter or digit.
func Handle(field, s string) error {
	if err := Name(field, s); err != nil {
		return err
	}
	for _, r := range s {
		if r > unicode.MaxASCII || unicode.IsUpper(r) || r == ' ' {
			return problem.Invalid(field, "may contain lower-case letters, digits, dots, dashes and underscores, not %q", r)
		}
	}
	return nil
}

// Line checks free text of one line: no control characters, and none that change the direction of
// text.
func Line(field, s string, most int) error {
	if !utf8.ValidString(s) {
		return problem.Invalid(field, "must be UTF-8")
	}
	if utf8.RuneCountInString(s) > most {
		return problem.Invalid(field, "is longer than %d characters", most)
	}
	for _, r := range s {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.In(r, unicode.Zl, unicode.Zp) {
			return problem.Invalid(field, "must not contain the character %U", r)
		}
	}
	return nil
}

// alphabets have letters that look like those of another of them.
var alphabets = []*unicode.RangeTable{
	unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Armenian, unicode.Cherokee, unicode.Coptic, unicode.Lisu, unicode.Deseret,
}

// OneAlphabet returns an error for a word that mixes letters of several alphabets that look alike,
// such as a Cyrillic ѕ among Latin letters, because people would read it as another word.
func OneAlphabet(field, s string) error {
	found := -1
	for _, r := range s {
		i := slices.IndexFunc(alphabets, func(t *unicode.RangeTable) bool { return unicode.Is(t, r) })
		if i >= 0 && found >= 0 && i != found {
			return problem.Invalid(field, "mixes similar letters of several alphabets")
		}
		if i >= 0 {
			found = i
		}
	}
	return nil
}

// Host reports whether s is a host name in lower case, or an address.
func Host(s string) bool {
	return len(s) <= 253 && (hostName.MatchString(s) || net.ParseIP(s) != nil)
}

var hostName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)

func alphanumeric(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
