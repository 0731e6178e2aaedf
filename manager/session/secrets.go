package session

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"entgo.io/ent/dialect/sql"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/seal"
)

// secrets are the encrypted values in the row of a session.
type secrets struct {
	Environment     map[string]string `json:"environment,omitempty"`
	BootstrapScript string            `json:"bootstrapScript,omitempty"`
	// Apps are the environments of the apps, by name.
	Apps map[string]map[string]string `json:"apps,omitempty"`
	// Peers is the secret from which the SSH keys between the kernels of a session are derived.
	Peers []byte `json:"peers,omitempty"`
}

func (x secrets) empty() bool {
	return len(x.Environment) == 0 && x.BootstrapScript == "" && len(x.Apps) == 0 && len(x.Peers) == 0
}

// seal returns the encrypted form, nil without secrets, and the variables with empty values.
func (s *Service) seal(x secrets) (sealed []byte, names map[string]string, err error) {
	names = make(map[string]string, len(x.Environment))
	for name := range x.Environment {
		names[name] = ""
	}
	if x.empty() {
		return nil, names, nil
	}
	text, err := json.Marshal(x)
	if err != nil {
		return nil, nil, fmt.Errorf("encode environment: %w", err)
	}
	return s.Keys.Seal(seal.SessionSecrets, text), names, nil
}

// open returns the decrypted values of a row, or the plaintext in a row of an older version.
func (s *Service) open(row *ent.Session) (secrets, error) { return open(s.Keys, row) }

func open(keys *seal.Ring, row *ent.Session) (x secrets, err error) {
	if len(row.SecretsSealed) == 0 {
		return secrets{Environment: row.Environment, BootstrapScript: row.BootstrapScript, Apps: environments(row.Apps)}, nil
	}
	text, err := keys.Open(seal.SessionSecrets, row.SecretsSealed)
	if err != nil {
		return x, fmt.Errorf("environment of session %s: %w", row.ID, err)
	}
	if err := json.Unmarshal(text, &x); err != nil {
		return x, fmt.Errorf("environment of session %s: %w", row.ID, err)
	}
	return x, nil
}

// Environment returns the requested variables with their values. The caller has checked that the
// viewer can enter the session.
func (s *Service) Environment(row *ent.Session) (map[string]string, error) {
	x, err := s.open(row)
	if x.Environment == nil {
		x.Environment = map[string]string{}
	}
	return x.Environment, err
}

const (
	sealEvery = 10 * time.Minute // older managers may still write plaintext
	sealBatch = 200
)

// sealOld encrypts the plaintext in rows of older versions, until ctx ends.
func (s *Service) sealOld(ctx context.Context) {
	if s.Keys == nil {
		return
	}
	tick := time.NewTicker(sealEvery)
	defer tick.Stop()
	for {
		for {
			n, err := s.sealSome(ctx)
			if err != nil && ctx.Err() == nil {
				s.Logger.WarnContext(ctx, "encrypt environments of sessions", "error", err)
			}
			if n > 0 {
				s.Logger.InfoContext(ctx, "environments of sessions encrypted", "sessions", n)
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
func (s *Service) sealSome(ctx context.Context) (int, error) {
	rows, err := s.Client.Session.Query().
		Where(session.SecretsSealedIsNil(), unsealed).
		Select(session.FieldEnvironment, session.FieldBootstrapScript).Limit(sealBatch).All(ctx)
	if err != nil {
		return 0, fmt.Errorf("read sessions: %w", err)
	}
	for i, row := range rows {
		sealed, names, err := s.seal(secrets{Environment: row.Environment, BootstrapScript: row.BootstrapScript, Apps: environments(row.Apps)})
		if err != nil {
			return i, err
		}
		err = s.Client.Session.Update().Where(session.ID(row.ID), session.SecretsSealedIsNil()).
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
