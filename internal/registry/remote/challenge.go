package remote

import (
	"net/http"
	"strings"
)

// challenges reads WWW-Authenticate, and prefers a token to a password.
func challenges(h http.Header) challenge {
	var best challenge
	for _, line := range h.Values("WWW-Authenticate") {
		scheme, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case strings.EqualFold(scheme, bearer):
			p := parameters(rest)
			return challenge{scheme: bearer, realm: p["realm"], service: p["service"], scope: p["scope"]}
		case strings.EqualFold(scheme, basic):
			best.scheme = basic
		}
	}
	return best
}

// parameters reads name="value", name=value and so on.
func parameters(s string) map[string]string {
	p := map[string]string{}
	for {
		s = strings.TrimLeft(s, ", \t")
		name, rest, ok := strings.Cut(s, "=")
		if !ok {
			return p
		}
		name = strings.ToLower(strings.TrimSpace(name))
		rest = strings.TrimLeft(rest, " \t")
		if !strings.HasPrefix(rest, `"`) {
			value, after, _ := strings.Cut(rest, ",")
			p[name], s = strings.TrimSpace(value), after
			continue
		}
		var value strings.Builder
		i := 1
		for ; i < len(rest) && rest[i] != '"'; i++ {
			if rest[i] == '\\' && i+1 < len(rest) {
				i++
			}
			value.WriteByte(rest[i])
		}
		p[name], s = value.String(), rest[min(i+1, len(rest)):]
	}
}
