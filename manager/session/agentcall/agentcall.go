// Package agentcall has the time limit of calls to agents and the errors after which they are
// repeated.
package agentcall

import (
	"context"
	"errors"
	"time"

	"github.com/containerd/errdefs"
)

// Timeout limits a call to an agent; the longest waits 20 s for the end of an earlier launch. A call
// that hangs must not block a worker.
const Timeout = 30 * time.Second

// Unreachable reports whether an agent did not answer, so that the call is tried again later.
func Unreachable(err error) bool {
	return errdefs.IsUnavailable(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
