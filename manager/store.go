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

// OpenStore connects to PostgreSQL and brings its tables up to date. Replicas
// that start at once migrate one after the other. The pool beside the client is
// that of the audit log: it answers whatever requests do. conns bounds the connections
// for requests; 0 is the default.
func OpenStore(ctx context.Context, dsn string, conns int) (*ent.Client, *sql.DB, error) {
	db, err := sql.Open("pgx", dsn) // an index of a large table takes longer than a statement may
	if err != nil {
		return nil, nil, fmt.Errorf("open database: %w", err)
	}
	defer db.Close()
	if err := migrate.Up(ctx, db, migrate.Files()); err != nil {
		return nil, nil, fmt.Errorf("migrate database: %w", err)
	}
	pools, err := store.Connect(dsn, conns)
	if err != nil {
		return nil, nil, err
	}
	return pools.Client(), pools[store.Trail], nil
}

func openRedis(url string) (redis.UniversalClient, error) {
	opt, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("redis url: %w", err)
	}
	return redis.NewClient(opt), nil
}
