package transfer

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/berthhq/berth/internal/problem"
)

// tooLate is the limit for modification times. ext4 stores times until 2446, and later ones
// are mistakes.
var tooLate = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

// modified returns the modification time from the metadata of a tus client: mtime, in seconds
// since 1970 with up to nine decimals. Nil means now. Other metadata is ignored.
func modified(r *http.Request) (*time.Time, error) {
	const header = "Upload-Metadata"
	for pair := range strings.SplitSeq(r.Header.Get(header), ",") {
		key, encoded, _ := strings.Cut(strings.TrimSpace(pair), " ")
		if key != "mtime" {
			continue
		}
		text, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return nil, problem.Invalid(header, "mtime is not in base64")
		}
		whole, part, dotted := strings.Cut(string(text), ".")
		sec, err := strconv.ParseUint(whole, 10, 63)
		nsec := uint64(0)
		if err == nil && dotted {
			nsec, err = strconv.ParseUint((part + "000000000")[:9], 10, 63)
		}
		if err != nil || dotted && (part == "" || len(part) > 9) || sec >= uint64(tooLate.Unix()) {
			return nil, problem.Invalid(header, "mtime %q is no number of seconds from 1970 to %d", text, tooLate.Year()-1)
		}
		at := time.Unix(int64(sec), int64(nsec)).UTC()
		return &at, nil
	}
	return nil, nil
}
