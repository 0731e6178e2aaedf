package manager

import (
	"context"
	"database/sql"
	"fmt"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver named pgx
	"github.com/redis/go-redis/v9"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/migrate"
	_ "github.com/berthhq/berth/ent/runtime" // visibility rules and defaults
	"github.com/berthhq/berth/manager/store"
)

// maxConns leaves room for a second replica and psql below the 60 that the
// private PostgreSQL allows.
const maxConns = 20

// OpenStore connects to PostgreSQL and brings its tables up to date. Replicas
// that start at once migrate one after the other.
func OpenStore(ctx context.Context, dsn string) (*ent.Client, *sql.DB, error) {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return nil, nil, fmt.Errorf("open database: %w", err)
	}
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns / 2)
	if err := migrate.Up(ctx, db, migrate.Files()); err != nil {
		_ = db.Close()
		return nil, nil, fmt.Errorf("migrate database: %w", err)
	}
	return store.Open(db), db, nil
}

func openRedis(url string) (redis.UniversalClient, error) {
	opt, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("redis url: %w", err)
	}
	return redis.NewClient(opt), nil
}
