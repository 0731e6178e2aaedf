package transfer

import (
	"io"
	"net/http"
	"time"

	"github.com/berthhq/berth/internal/ticket"
)

// exchange is one request's answer and what is known about it in the end.
type exchange struct {
	http.ResponseWriter
	request  string
	kind     string
	began    time.Time
	claims   ticket.Claims
	deadline *readDeadline
	status   int
	sent     int64
	received int64
	err      error
}

func (x *exchange) WriteHeader(status int) {
	if x.status == 0 {
		x.status = status
	}
	x.ResponseWriter.WriteHeader(status)
}

func (x *exchange) Write(b []byte) (int, error) {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	n, err := x.ResponseWriter.Write(b)
	x.sent += int64(n)
	return n, err
}

// ReadFrom keeps the way open for sendfile(2).
func (x *exchange) ReadFrom(src io.Reader) (int64, error) {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	n, err := io.Copy(x.ResponseWriter, src)
	x.sent += n
	return n, err
}

// Unwrap is for http.ResponseController.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }
