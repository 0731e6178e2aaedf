package transfer

import (
	"context"
	"errors"
	"strconv"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/ticket"
	"github.com/berthhq/berth/storage/volume"
)

// reserve reserves storage for an upload, `more` bytes in addition to earlier reservations. It
// returns an error if the limit of the scope or the free space of the disk is too small.
func reserve(ctx context.Context, v *volume.Volume, scope string, r volume.Room, more int64) error {
	if err := v.Room(more); err != nil {
		return err
	}
	return v.Reserve(ctx, scope, r)
}

// explain adds the limit of the scope to an error of a product that enforces the limit itself.
func (s *Server) explain(c ticket.Claims, err error) error {
	if !errors.Is(err, errLimit) {
		return err
	}
	v, verr := s.cfg.Volumes.Get(c.Volume)
	if verr != nil {
		return err
	}
	scope := v.LastScope(c.Scope)
	if most := scope.GetLimit().GetInodes(); most > 0 && scope.GetUsedInodes() >= most {
		return noRoom(most, "write upload: the scope's limit of %d files and directories is reached; the upload goes on when there is room", most)
	}
	limit := scope.GetLimit().GetBytes()
	if limit == 0 {
		return err
	}
	return noRoom(limit, "write upload: the scope's limit of %d bytes is reached; the upload goes on when there is room", limit)
}

func noRoom(limit int64, format string, args ...any) error {
	return problem.Full(format, args...).WithLimit(strconv.FormatInt(limit, 10))
}
