package migrate

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
)

//go:embed sql/*.sql
var embedded embed.FS

// Files are the migrations, NNNN_name.sql, in the order of their numbers. A
// file that has been released is never changed: its checksum is kept.
func Files() fs.FS {
	sub, err := fs.Sub(embedded, "sql")
	if err != nil {
		panic(err) // the name is a constant
	}
	return sub
}

// lock is the advisory lock that one migrating process holds; the number
// means nothing.
const lock = 0x6265727468

const ledger = `CREATE TABLE IF NOT EXISTS schema_migrations (
	version integer PRIMARY KEY,
	name text NOT NULL,
	checksum text NOT NULL,
	applied_at timestamptz NOT NULL DEFAULT now()
)`

// Up applies the migrations that a database lacks, each in a transaction of
// its own with its entry in schema_migrations, so that one which is cut short
// has not been. Processes that start at once go one after the other.
func Up(ctx context.Context, db *sql.DB, files fs.FS) error {
	all, err := read(files)
	if err != nil {
		return err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect to database: %w", err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", int64(lock)); err != nil {
		return fmt.Errorf("take migration lock: %w", err)
	}
	defer func() {
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", int64(lock))
	}()
	applied, err := applied(ctx, conn)
	if err != nil {
		return err
	}
	if err := compare(all, applied); err != nil {
		return err
	}
	for _, m := range all[len(applied):] {
		if err := m.apply(ctx, conn); err != nil {
			return fmt.Errorf("migration %04d_%s: %w", m.version, m.name, err)
		}
	}
	return nil
}

// migration is one file.
type migration struct {
	version        int
	name, checksum string
	text           string
}

// read returns the files, which are numbered from 1 without a gap.
func read(files fs.FS) ([]migration, error) {
	names, err := fs.Glob(files, "*.sql") // sorted
	if err != nil {
		return nil, err
	}
	var all []migration
	for i, file := range names {
		text, err := fs.ReadFile(files, file)
		if err != nil {
			return nil, err
		}
		number, name, _ := strings.Cut(strings.TrimSuffix(path.Base(file), ".sql"), "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != i+1 || name == "" {
			return nil, fmt.Errorf("migration %s is not %04d_name.sql: %w", file, i+1, errdefs.ErrInvalidArgument)
		}
		sum := sha256.Sum256(text)
		all = append(all, migration{version, name, hex.EncodeToString(sum[:8]), string(text)})
	}
	return all, nil
}

func applied(ctx context.Context, conn *sql.Conn) ([]migration, error) {
	if _, err := conn.ExecContext(ctx, ledger); err != nil {
		return nil, fmt.Errorf("make table of migrations: %w", err)
	}
	rows, err := conn.QueryContext(ctx, "SELECT version, name, checksum FROM schema_migrations ORDER BY version")
	if err != nil {
		return nil, fmt.Errorf("read table of migrations: %w", err)
	}
	defer rows.Close()
	var out []migration
	for rows.Next() {
		var m migration
		if err := rows.Scan(&m.version, &m.name, &m.checksum); err != nil {
			return nil, fmt.Errorf("read table of migrations: %w", err)
		}
		out = append(out, m)
	}
	return out, rows.Err()
}

// compare refuses a database whose past is not the beginning of ours.
func compare(ours, theirs []migration) error {
	if len(theirs) > len(ours) {
		return fmt.Errorf("the database is of a newer release: it has migration %d, this program knows %d: %w",
			len(theirs), len(ours), errdefs.ErrFailedPrecondition)
	}
	for i, m := range theirs {
		if m.version != ours[i].version || m.checksum != ours[i].checksum {
			return fmt.Errorf("migration %04d_%s was applied with another text than that of %04d_%s: %w",
				m.version, m.name, ours[i].version, ours[i].name, errdefs.ErrFailedPrecondition)
		}
	}
	return nil
}

func (m migration) apply(ctx context.Context, conn *sql.Conn) error {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, m.text); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO schema_migrations (version, name, checksum) VALUES ($1, $2, $3)",
		m.version, m.name, m.checksum)
	if err != nil {
		return err
	}
	return tx.Commit()
}
