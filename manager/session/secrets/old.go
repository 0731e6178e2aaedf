package secrets

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"entgo.io/ent/dialect/sql"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/seal"
)

const (
	sealEvery = 10 * time.Minute // older managers may still write plaintext
	sealBatch = 200
)

// SealOld encrypts the plaintext in rows of older versions, until ctx ends.
func SealOld(ctx context.Context, client *ent.Client, keys *seal.Ring, logger *slog.Logger) {
	if keys == nil {
		return
	}
	tick := time.NewTicker(sealEvery)
	defer tick.Stop()
	for {
		for {
			n, err := sealSome(ctx, client, keys)
			if err != nil && ctx.Err() == nil {
				logger.WarnContext(ctx, "encrypt environments of sessions", "error", err)
			}
			if n > 0 {
				logger.InfoContext(ctx, "environments of sessions encrypted", "sessions", n)
			}
			if n < sealBatch || err != nil {
				break
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sealSome encrypts a batch. If two leaders do so at once, both write the same values.
func sealSome(ctx context.Context, client *ent.Client, keys *seal.Ring) (int, error) {
	rows, err := client.Session.Query().
		Where(session.SecretsSealedIsNil(), unsealed).
		Select(session.FieldEnvironment, session.FieldBootstrapScript).Limit(sealBatch).All(ctx)
	if err != nil {
		return 0, fmt.Errorf("read sessions: %w", err)
	}
	for i, row := range rows {
		sealed, names, err := plain(row).Seal(keys)
		if err != nil {
			return i, err
		}
		err = client.Session.Update().Where(session.ID(row.ID), session.SecretsSealedIsNil()).
			SetSecretsSealed(sealed).SetEnvironment(names).SetBootstrapScript("").Exec(ctx)
		if err != nil {
			return i, fmt.Errorf("encrypt session %s: %w", row.ID, err)
		}
	}
	return len(rows), nil
}

// unsealed selects rows with plaintext.
func unsealed(s *sql.Selector) {
	s.Where(sql.Or(
		sql.NEQ(s.C(session.FieldBootstrapScript), ""),
		sql.P(func(b *sql.Builder) { b.Ident(s.C(session.FieldEnvironment)).WriteString(" <> '{}'::jsonb") }),
	))
}
