package volume

import (
	"context"
	"fmt"
	"time"

	"github.com/containerd/errdefs"

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

// Over refuses a file that a scope has no room for beside what is promised to others, and
// returns the limit that is in its way.
func Over(s *volumepb.Scope, size, promised int64) (limit *int64, err error) {
	if most := s.GetLimit(); most != nil && most.Inodes != nil && s.GetUsedInodes() >= *most.Inodes {
		return most.Inodes, fmt.Errorf("one more file: the scope's limit is %d files and directories: %w", *most.Inodes, errdefs.ErrResourceExhausted)
	}
	if s.GetLimit() == nil || s.Limit.Bytes == nil {
		return nil, nil
	}
	limit = s.Limit.Bytes
	taken := s.GetUsedBytes() + promised
	if size <= *limit-taken {
		return nil, nil
	}
	return limit, fmt.Errorf("%d bytes: the scope's limit is %d bytes and %d are taken: %w", size, *limit, taken, errdefs.ErrResourceExhausted)
}

// fits refuses a copy that would pass a limit which the proxy has to keep; a
// product that keeps it knows better what blocks a copy shares.
func (v *Volume) fits(ctx context.Context, scope string, r Room) error {
	if v.Enforcement() != "cooperative" {
		return nil
	}
	_, err := v.Reserve(ctx, scope, r)
	return err
}
