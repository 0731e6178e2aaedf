package transfer

import (
	"io"
	"math"
	"net/http"
	"time"

	"github.com/berthhq/berth/internal/ticket"
)

// exchange is the ResponseWriter of one request and the data for its log line.
type exchange struct {
	http.ResponseWriter
	request  string
	kind     string
	proto    int // major version of HTTP
	began    time.Time
	claims   ticket.Claims
	deadline *deadlines
	status   int
	sent     int64
	received int64
	err      error
}

func (x *exchange) WriteHeader(status int) {
	if x.status == 0 {
		x.status = status
	}
	if x.proto == 1 && x.deadline.spent() { // HTTP/2 has streams, which end with the request
		x.Header().Set("Connection", "close")
	}
	x.ResponseWriter.WriteHeader(status)
}

func (x *exchange) Write(b []byte) (int, error) {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	x.deadline.extendWrite()
	n, err := x.ResponseWriter.Write(b)
	x.sent += int64(n)
	return n, err
}

// ReadFrom lets io.Copy use sendfile(2).
func (x *exchange) ReadFrom(src io.Reader) (int64, error) {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	part, bounded := src.(*io.LimitedReader)
	if !bounded {
		part = &io.LimitedReader{R: src, N: math.MaxInt64}
	}
	for sum := int64(0); ; {
		x.deadline.extendWrite()
		// net's sendfile unwraps only one LimitedReader, so there are never two.
		n, err := io.Copy(x.ResponseWriter, &io.LimitedReader{R: part.R, N: min(piece, part.N)})
		part.N, sum, x.sent = part.N-n, sum+n, x.sent+n
		if err != nil || n < piece || part.N == 0 {
			return sum, err
		}
	}
}

// Unwrap implements the convention of http.ResponseController.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }
