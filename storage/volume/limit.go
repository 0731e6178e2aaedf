package volume

import (
	"context"
	"strconv"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/plugins/volume/volumepb"
)

// limitTimeout is how long an operation waits for the limit of a scope. If the plugin does not
// answer, the last known limit is used.
const limitTimeout = 2 * time.Second

// Limit returns a scope with its limit and usage, or nil if neither is known.
func (v *Volume) Limit(ctx context.Context, scope string) (*volumepb.Scope, error) {
	ask, cancel := context.WithTimeout(ctx, limitTimeout)
	defer cancel()
	s, err := v.GetScope(ask, scope)
	if err == nil || errdefs.IsNotFound(err) {
		return s, err
	}
	return v.LastScope(scope), nil
}

// Over refuses a file that a scope has no room for beside what is promised to others.
func Over(s *volumepb.Scope, size, promised int64) error {
	limit := s.GetLimit()
	if most := limit.GetInodes(); limit != nil && limit.Inodes != nil && s.GetUsedInodes() >= most {
		return problem.Full("one more file: the scope's limit is %d files and directories", most).WithLimit(strconv.FormatInt(most, 10))
	}
	if limit == nil || limit.Bytes == nil {
		return nil
	}
	most, taken := limit.GetBytes(), s.GetUsedBytes()+promised
	if size <= most-taken {
		return nil
	}
	return problem.Full("%d bytes: the scope's limit is %d bytes and %d are taken", size, most, taken).WithLimit(strconv.FormatInt(most, 10))
}

// fits returns an error if a copy would exceed a limit that the proxy must enforce. A product
// that enforces the limit itself knows better which blocks a copy shares.
func (v *Volume) fits(ctx context.Context, scope string, r Room) error {
	if v.Enforcement() != "cooperative" {
		return nil
	}
	return v.Reserve(ctx, scope, r)
}
