package transfer

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/berthhq/berth/internal/problem"
)

// maxRanges is more than any known client requests at once. An answer to many ranges costs the
// server far more than the request costs the client.
const maxRanges = 16

// checkRanges rejects a request for too many parts of a file. It also rejects a request for
// the last zero bytes, which net/http answers with a part that ends before it begins.
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
				return badRange("the last 0 bytes are none")
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
