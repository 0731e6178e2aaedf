package volume

import (
	"context"
	"strconv"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/plugins/volume/volumepb"
)

// limitTimeout is how long work waits to be told a scope's limit. A plugin that
// is away does not stop it: the limit it told last is used.
const limitTimeout = 2 * time.Second

// Limit asks for a scope's limit and usage, nil where neither is known.
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

// fits refuses a copy that would pass a limit which the proxy has to keep; a
// product that keeps it knows better what blocks a copy shares.
func (v *Volume) fits(ctx context.Context, scope string, r Room) error {
	if v.Enforcement() != "cooperative" {
		return nil
	}
	return v.Reserve(ctx, scope, r)
}
