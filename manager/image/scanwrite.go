package image

import (
	"context"
	"fmt"
	"slices"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entimage "github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/ent/registry"
	"github.com/berthhq/berth/ent/scanresult"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/store"
)

// Results are written when there are batchSize, or after batchTime, so that the progress is shown.
const (
	batchSize = 100
	batchTime = time.Second
)

// collect saves n results in batches. Results of tags at which the registry was silent wait for an
// answer to another tag: if none comes, the registry is away, and the task continues later.
func (s *scan) collect(ctx context.Context, found <-chan result, n int) error {
	batch, silent := s.refusals, []result(nil)
	total := s.done + int64(n+len(s.refusals))
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		if err := s.write(ctx, batch); err != nil {
			return err
		}
		s.done += int64(len(batch))
		batch = batch[:0]
		return s.at.Save(ctx, s.state, s.done, total)
	}
	tick := time.NewTicker(batchTime)
	defer tick.Stop()
	for range n {
		r, err := s.next(ctx, found, tick.C, flush)
		if err != nil {
			return err
		}
		if !r.silent {
			batch, silent = append(append(batch, r), silent...), nil
		} else if silent = append(silent, r); len(silent) >= silence {
			return problem.Unavailable("registry %s stopped answering: %s", s.registry.Name, r.message)
		}
		if len(batch) >= batchSize {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	batch = append(batch, silent...)
	return flush()
}

// next returns the next result, and flushes while it waits.
func (s *scan) next(ctx context.Context, found <-chan result, tick <-chan time.Time, flush func() error) (result, error) {
	for {
		select {
		case r := <-found:
			return r, ctx.Err()
		case <-tick:
			if err := flush(); err != nil {
				return result{}, err
			}
		case <-ctx.Done():
			return result{}, ctx.Err()
		}
	}
}

// write stores results with their images.
func (s *scan) write(ctx context.Context, batch []result) error {
	err := store.InTx(ctx, s.client, func(tx *ent.Tx) error {
		var read []tagged
		for _, r := range batch {
			if r.content != nil {
				read = append(read, tagged{r.name, r.content.Images})
			}
		}
		recorded, err := s.record(ctx, tx.Client(), s.registry, read)
		if err != nil {
			return err
		}
		for i, r := range batch {
			if got, ok := recorded[r.name]; ok {
				batch[i].outcome = got.outcome
			}
			s.counts[batch[i].outcome]++
			if r.missing {
				s.listed[r.name] = r.name == repositoryOf(r.name) // the result of a repository stays
			}
		}
		return s.store(ctx, tx, batch)
	})
	if err != nil {
		return fmt.Errorf("save results: %w", err)
	}
	for _, r := range batch {
		s.meter.tags.WithLabelValues(string(r.outcome)).Inc()
	}
	return nil
}

func (s *scan) store(ctx context.Context, tx *ent.Tx, batch []result) error {
	rows := make([]*ent.ScanResultCreate, len(batch))
	for i, r := range batch {
		rows[i] = tx.ScanResult.Create().SetRegistryID(s.registry.ID).SetName(r.name).SetOutcome(r.outcome).
			SetDigest(r.digest).SetMessage(r.message).SetScanID(s.state.Scan).SetScannedAt(clock.Now())
	}
	return tx.ScanResult.CreateBulk(rows...).
		OnConflict(sql.ConflictColumns(scanresult.FieldRegistryID, scanresult.FieldName)).
		Update(func(u *ent.ScanResultUpsert) {
			u.UpdateOutcome().UpdateDigest().UpdateMessage().UpdateScanID().UpdateScannedAt()
			u.SetIgnore(scanresult.FieldID)
		}).Exec(ctx)
}

// end marks what is gone, and notes the scan.
func (s *scan) end(ctx context.Context) error {
	err := store.InTx(ctx, s.client, func(tx *ent.Tx) error {
		if err := s.endResults(ctx, tx); err != nil {
			return err
		}
		alive, err := tx.Image.Query().Where(entimage.RegistryID(s.registry.ID), entimage.StatusEQ(entimage.StatusAlive)).
			Select(entimage.FieldID, entimage.FieldName).All(ctx)
		if err != nil {
			return fmt.Errorf("read images: %w", err)
		}
		var lost []uuid.UUID
		for _, i := range alive {
			if !s.listed[i.Name] && s.looked(i.Name) {
				lost = append(lost, i.ID)
			}
		}
		for part := range slices.Chunk(lost, 1000) {
			if err := tx.Image.Update().Where(entimage.IDIn(part...)).SetStatus(entimage.StatusGone).Exec(ctx); err != nil {
				return fmt.Errorf("mark images gone: %w", err)
			}
		}
		n, err := tx.Registry.Update().Where(registry.ID(s.registry.ID)).SetLastScannedAt(clock.Now()).Save(ctx)
		if err == nil && n == 0 {
			return problem.NotFound("registry")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("end the scan: %w", err)
	}
	s.at.Remark(s.summary())
	return nil
}

// endResults keeps one scan's results: tags that are gone since the scan before are results of this
// one, and those that were gone then are removed.
func (s *scan) endResults(ctx context.Context, tx *ent.Tx) error {
	var gone, old, kept []uuid.UUID
	for name, r := range s.before {
		read := len(s.registry.Repositories) == 0 || matches(s.registry.Repositories, repositoryOf(name))
		switch {
		case s.listed[name]:
		case !read, name == repositoryOf(name), s.looked(name) && r.Outcome == scanresult.OutcomeGone && r.ScanID != s.state.Scan:
			old = append(old, r.ID)
		case !s.looked(name): // its repository could not be listed
			kept = append(kept, r.ID)
		default:
			gone = append(gone, r.ID)
		}
	}
	for part := range slices.Chunk(old, 1000) {
		if _, err := tx.ScanResult.Delete().Where(scanresult.IDIn(part...)).Exec(ctx); err != nil {
			return fmt.Errorf("remove old results: %w", err)
		}
	}
	for part := range slices.Chunk(kept, 1000) {
		if err := tx.ScanResult.Update().Where(scanresult.IDIn(part...)).SetScanID(s.state.Scan).Exec(ctx); err != nil {
			return fmt.Errorf("keep results: %w", err)
		}
	}
	for part := range slices.Chunk(gone, 1000) {
		if err := tx.ScanResult.Update().Where(scanresult.IDIn(part...)).SetOutcome(scanresult.OutcomeGone).SetMessage("").
			SetDigest("").SetScanID(s.state.Scan).SetScannedAt(clock.Now()).Exec(ctx); err != nil {
			return fmt.Errorf("mark results gone: %w", err)
		}
	}
	s.counts[scanresult.OutcomeGone] += len(gone)
	return nil
}
