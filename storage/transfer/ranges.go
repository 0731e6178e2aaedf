package transfer

import (
	"fmt"
	"net/http"
	"strings"
)

// maxRanges is more than any client asks for at once: an answer to many costs far more
// than to ask for it does.
const maxRanges = 16

// checkRanges refuses a request for too many parts of a file, and for the last zero bytes,
// which net/http answers with a part that ends before it begins.
func checkRanges(r *http.Request) error {
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
				return badRange(nil, "the last 0 bytes are none")
			}
		}
	}
	if n > maxRanges {
		limit := int64(maxRanges)
		return badRange(&limit, "%d parts, at most %d", n, maxRanges)
	}
	return nil
}

func badRange(limit *int64, format string, args ...any) error {
	return &problem{
		status: http.StatusRequestedRangeNotSatisfiable, code: "INVALID_ARGUMENT", field: "Range", limit: limit,
		detail: "Range: " + fmt.Sprintf(format, args...),
	}
}
