package transfer

import (
	"context"
	"strings"
	"time"

	"github.com/berthhq/berth/storage/volume"
)

// sweep removes uploads and copies that no client has continued for their lifetime, and the
// notes of used tickets after the tickets have expired.
func (s *Server) sweep(ctx context.Context, now time.Time) {
	for _, v := range s.cfg.Volumes.All() {
		scopes, err := v.Scopes()
		if err != nil {
			continue // not mounted; a later sweep covers it
		}
		for _, scope := range scopes {
			if ctx.Err() != nil {
				return
			}
			if err := v.SweepArrivals(ctx, scope, now); err != nil {
				s.log.Warn("sweep copies", "volume", v.Name(), "scope", scope, "error", err)
			}
			st, err := v.Staged(scope)
			if err != nil {
				continue // no upload yet
			}
			if err := s.sweepStaging(ctx, v, st, now); err != nil {
				s.log.Warn("sweep uploads", "volume", v.Name(), "scope", scope, "error", err)
			}
			st.Close()
		}
	}
}

func (s *Server) sweepStaging(ctx context.Context, v *volume.Volume, st *volume.Staging, now time.Time) error {
	last := make(map[string]time.Time) // upload → its latest change
	err := st.Each(func(name string, modified time.Time) {
		id, _, _ := strings.Cut(name, ".")
		if modified.After(last[id]) {
			last[id] = modified
		}
	})
	if err != nil {
		return err
	}
	for id, at := range last {
		if now.Sub(at) < lifetime {
			continue
		}
		if err := s.abandon(ctx, v, st, id, now); err != nil {
			return err
		}
	}
	return nil
}

// abandon removes the files of one upload. The note goes first, because bytes without a note
// are not an upload.
func (s *Server) abandon(ctx context.Context, v *volume.Volume, st *volume.Staging, id string, now time.Time) error {
	u, err := readUpload(st, id)
	if err == nil && now.Before(u.Claims.Expires) {
		return nil // its ticket could still be used again
	}
	release, err := s.locks.take(ctx, id, func() {})
	if err != nil {
		return err
	}
	defer release()
	if u != nil {
		v.Withdraw(u.Claims.Scope, id)
	}
	for _, suffix := range []string{".json", ".json.new", ".part"} {
		if err := st.Remove(id + suffix); err != nil {
			return err
		}
	}
	return nil
}
