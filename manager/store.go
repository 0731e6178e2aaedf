package manager

import (
	"context"
	"database/sql"
	"fmt"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver named pgx
	"github.com/redis/go-redis/v9"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/migrate"
	_ "github.com/berthhq/berth/ent/runtime" // visibility rules and defaults
)

// maxConns leaves room for a second replica and psql below the 60 that the
// private PostgreSQL allows.
const maxConns = 20

// migrationLock is the advisory lock that one migrating manager holds; the
// number means nothing.
const migrationLock = 0x62657274

// OpenStore connects to PostgreSQL and brings its tables up to date. Replicas
// that start at once migrate one after the other.
func OpenStore(ctx context.Context, dsn string) (*ent.Client, *sql.DB, error) {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return nil, nil, fmt.Errorf("open database: %w", err)
	}
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns / 2)
	drv := entsql.OpenDB(dialect.Postgres, db)
	if err := migrateOnce(ctx, db, drv); err != nil {
		_ = db.Close()
		return nil, nil, err
	}
	return ent.NewClient(ent.Driver(drv)), db, nil
}

func migrateOnce(ctx context.Context, db *sql.DB, drv dialect.Driver) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect to database: %w", err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", migrationLock); err != nil {
		return fmt.Errorf("take migration lock: %w", err)
	}
	defer func() {
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", migrationLock)
	}()
	if err := migrate.NewSchema(drv).Create(ctx); err != nil {
		return fmt.Errorf("migrate database: %w", err)
	}
	return nil
}

func openRedis(url string) (redis.UniversalClient, error) {
	opt, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("redis url: %w", err)
	}
	return redis.NewClient(opt), nil
}
