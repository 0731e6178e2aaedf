package problem

import (
	"cmp"
	"encoding/json"
	"math"
	"net/http"
	"strconv"

	"github.com/berthhq/berth/internal/requestid"
)

// statuses are the HTTP statuses of codes.
var statuses = map[string]int{
	CodeInvalidArgument:    http.StatusBadRequest,
	CodeNotFound:           http.StatusNotFound,
	CodeAlreadyExists:      http.StatusConflict,
	CodePermissionDenied:   http.StatusForbidden,
	CodeUnauthenticated:    http.StatusUnauthorized,
	CodeFailedPrecondition: http.StatusConflict,
	CodeResourceExhausted:  http.StatusTooManyRequests,
	CodeAborted:            http.StatusConflict,
	CodeUnavailable:        http.StatusServiceUnavailable,
	CodeDeadlineExceeded:   http.StatusGatewayTimeout,
}

// titles are the names of statuses that net/http does not know.
var titles = map[int]string{StatusChecksum: "Checksum Mismatch"}

// StatusChecksum is the status of tus for bytes that arrived damaged.
const StatusChecksum = 460

// Status returns the HTTP status of a code.
func Status(code string) int {
	if s, ok := statuses[code]; ok {
		return s
	}
	return http.StatusInternalServerError
}

// Known reports whether code is one of the API's.
func Known(code string) bool {
	_, ok := statuses[code]
	return ok
}

// document is the document of RFC 9457, with Berth's own members.
type document struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Code      string `json:"code"`
	Field     string `json:"field,omitempty"`
	Limit     string `json:"limit,omitempty"`
	RequestID string `json:"requestId,omitempty"`
}

// WriteHTTP answers a request with err as RFC 9457 problem JSON. It reports whether the class of
// the error is known; the caller logs other errors.
func WriteHTTP(w http.ResponseWriter, r *http.Request, err error) (known bool) {
	p, known := From(err)
	status := cmp.Or(p.Status, Status(p.Code))
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Del("Content-Length")
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.RetryAfter.Seconds()))))
	}
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return known
	}
	body, _ := json.Marshal(document{ // strings and an int always marshal
		Type: "about:blank", Title: cmp.Or(http.StatusText(status), titles[status]), Status: status, Detail: p.Message,
		Code: p.Code, Field: p.Field, Limit: p.Limit, RequestID: requestid.From(r.Context()),
	})
	_, _ = w.Write(body) // the client may have disconnected
	return known
}
