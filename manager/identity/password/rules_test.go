package password

import (
	"strings"
	"testing"

	"github.com/containerd/errdefs"
)

func TestRules(t *testing.T) {
	for name, c := range map[string]struct {
		min      int
		password string
		ok       bool
	}{
		"good":                    {0, "four words in a row", true},
		"nine characters":         {0, "ninechars", false},
		"ten characters":          {0, "tenletters", true},
		"ten of twelve":           {12, "tenletters", false},
		"six of six":              {6, "sixsix", true},
		"counted in characters":   {0, "éèêéèêéèêé", true},
		"twelve spaces":           {0, "            ", false},
		"one letter":              {0, "aaaaaaaaaa", false},
		"one letter in two cases": {0, "aAaAaAaAaA", false},
		"two letters":             {0, "abababababab", false},
		"three letters":           {0, "abcabcabcabc", true},
		"common":                  {0, "Password123", false},
		"common, short":           {4, "letmein", false},
		"a word of a common line": {4, "password password1", true},
		"the e-mail":              {0, "Member-A@example.org", false},
		"the username":            {4, "member-a", false},
		"nul":                     {0, "has a \x00 in it", false},
		"not utf-8":               {0, "has a \xff in it", false},
		"too long":                {0, strings.Repeat("x", 129), false},
	} {
		t.Run(name, func(t *testing.T) {
			err := Rules{MinLength: c.min}.Check("password", c.password, "member-a@example.org", "member-a")
			if (err == nil) != c.ok || err != nil && !errdefs.IsInvalidArgument(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}
