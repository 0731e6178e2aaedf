package manager

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver named pgx
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/redis/go-redis/v9"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/migrate"
	_ "github.com/berthhq/berth/ent/runtime" // visibility rules and defaults
	"github.com/berthhq/berth/manager/store"
)

// OpenStore connects to PostgreSQL and migrates its tables. Replicas that start at the same
// time migrate one after the other. The returned pool is for the audit log, which must not
// wait for requests. conns limits the connections for requests; 0 is the default.
func OpenStore(ctx context.Context, dsn string, conns int) (*ent.Client, *sql.DB, error) {
	return openStore(ctx, dsn, conns, nil)
}

// openStore adds metrics of the client to a registry, which can be nil.
func openStore(ctx context.Context, dsn string, conns int, to prometheus.Registerer) (*ent.Client, *sql.DB, error) {
	db, err := sql.Open("pgx", dsn) // without statement timeout, since creating an index on a large table takes long
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
	if to != nil {
		if err := to.Register(pools); err != nil {
			return nil, nil, fmt.Errorf("measure the connections to the database: %w", err)
		}
	}
	return pools.MeasuredClient(to), pools[store.Audit], nil
}

// openRedis counts errors in a registry, which can be nil.
func openRedis(url string, to prometheus.Registerer) (redis.UniversalClient, error) {
	opt, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("redis url: %w", err)
	}
	client := redis.NewClient(opt)
	client.AddHook(redisErrors{promauto.With(to).NewCounter(prometheus.CounterOpts{
		Name: "berth_redis_errors_total", Help: "Commands that Redis did not carry out, and connections that could not be made.",
	})})
	return client, nil
}

// redisErrors counts errors. A missing key is not an error.
type redisErrors struct{ failed prometheus.Counter }

func (h redisErrors) count(ctx context.Context, err error) error {
	if err != nil && !errors.Is(err, redis.Nil) && ctx.Err() == nil {
		h.failed.Inc()
	}
	return err
}

// DialHook implements redis.Hook.
func (h redisErrors) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		return conn, h.count(ctx, err)
	}
}

// ProcessHook implements redis.Hook.
func (h redisErrors) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return h.count(ctx, next(ctx, cmd)) }
}

// ProcessPipelineHook implements redis.Hook.
func (h redisErrors) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { return h.count(ctx, next(ctx, cmds)) }
}
