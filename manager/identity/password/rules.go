package password

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/problem"
)

// Rules are a domain's requirements for passwords.
type Rules struct {
	MinLength int // characters; 0 is MinLength
}

// RulesOf returns the rules of a domain.
func RulesOf(d *ent.Domain) Rules { return Rules{MinLength: d.PasswordMinLength} }

// Check reports whether p can be the password of a user with the given names, such as their
// e-mail address.
func (r Rules) Check(field, p string, names ...string) error {
	least := r.MinLength
	if least <= 0 {
		least = MinLength
	}
	if !utf8.ValidString(p) || strings.ContainsRune(p, 0) {
		return problem.Invalid(field, "must be UTF-8 without NUL")
	}
	if utf8.RuneCountInString(p) < least {
		return problem.Invalid(field, "must have at least %d characters", least).WithLimit(fmt.Sprint(least))
	}
	if len(p) > MaxLength {
		return problem.Invalid(field, "must have at most %d bytes", MaxLength).WithLimit(fmt.Sprint(MaxLength))
	}
	low := strings.ToLower(p)
	if kinds(low) < leastKinds {
		return problem.Invalid(field, "must have at least %d different characters", leastKinds).WithLimit(fmt.Sprint(leastKinds))
	}
	for _, name := range names {
		if name != "" && low == strings.ToLower(name) {
			return problem.Invalid(field, "must not be the e-mail or the username")
		}
	}
	if slices.Contains(strings.Fields(common), low) {
		return problem.Invalid(field, "is one of the most common passwords")
	}
	return nil
}

// leastKinds is the minimum number of different characters of a password.
const leastKinds = 3

func kinds(p string) int {
	seen := map[rune]bool{}
	for _, r := range p {
		seen[r] = true
	}
	return len(seen)
}

// common are the most frequent passwords, in lower case.
//
//go:embed common.txt
var common string
