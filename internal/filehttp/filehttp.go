// Package filehttp has the HTTP headers of answers with files of users. Every route that sends such
// a file uses it, so that a browser saves the file and never shows it as a page of Berth.
package filehttp

import (
	"mime"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/berthhq/berth/internal/problem"
)

// Guard makes a browser save the answer instead of showing it, because a file can be a page with
// scripts.
func Guard(h http.Header, name string) {
	h.Set("Content-Disposition", disposition(name))
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "private, no-cache")
	h.Set("Cross-Origin-Resource-Policy", "same-site")
	h.Set("Referrer-Policy", "no-referrer") // the address can contain a ticket
}

// disposition returns a Content-Disposition with two names: one in ASCII for old clients, one
// by RFC 5987.
func disposition(name string) string {
	if !utf8.ValidString(name) {
		name = strings.ToValidUTF8(name, "_")
	}
	ascii := strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f || r == '"' || r == '\\' || r == '%' {
			return '_'
		}
		return r
	}, name)
	exact := strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
	return `attachment; filename="` + ascii + `"; filename*=UTF-8''` + exact
}

// ContentType returns the media type of a file by its name.
func ContentType(name string) string {
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		return t
	}
	return "application/octet-stream"
}

// maxRanges is more than any known client requests at once. An answer to many ranges costs the
// server far more than the request costs the client.
const maxRanges = 16

// CheckRanges rejects a request for too many parts of a file. It also rejects a request for
// the last zero bytes, which net/http answers with a part that ends before it begins.
func CheckRanges(r *http.Request) error {
	// Units that a server does not know are ignored (RFC 9110, 14.2).
	if unit, _, _ := strings.Cut(r.Header.Get("Range"), "="); !strings.EqualFold(strings.TrimSpace(unit), "bytes") {
		r.Header.Del("Range")
	}
	n := 0
	for _, h := range r.Header.Values("Range") {
		_, list, _ := strings.Cut(h, "=")
		for part := range strings.SplitSeq(list, ",") {
			n++
			if part = strings.TrimSpace(part); len(part) > 1 && strings.TrimRight(part, "0") == "-" {
				return badRange("the last 0 bytes are not a range")
			}
		}
	}
	if n > maxRanges {
		return badRange("has %d parts, at most %d are allowed", n, maxRanges).WithLimit(strconv.Itoa(maxRanges))
	}
	return nil
}

func badRange(format string, args ...any) *problem.Error {
	return problem.Invalid("Range", format, args...).WithStatus(http.StatusRequestedRangeNotSatisfiable)
}
