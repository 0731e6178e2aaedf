package store

import (
	"context"
	stdsql "database/sql"
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"
)

// Lane is a kind of work that has its own connections to the database, so that
// one kind cannot take those of another.
type Lane int

// The lanes. The default is Requests.
const (
	Requests Lane = iota
	// Streams is for the reads of subscriptions.
	Streams
	// Audit is for rows of the audit log, which must be written no matter how busy the other lanes
	// are.
	Audit
	// Leader is for the loops that only the leader runs.
	Leader

	lanes
)

// limits of a lane.
type limits struct {
	conns int
	// statement limits one statement, including the wait for a connection. PostgreSQL has the same
	// limit, so that it stops a statement whose client has died.
	statement time.Duration
}

// limitsOf returns limits with 27 connections for a manager: two managers and psql stay below the
// 60 connections of the private PostgreSQL.
var limitsOf = [lanes]limits{
	Requests: {14, 30 * time.Second},
	Streams:  {3, 15 * time.Second},
	Audit:    {2, 15 * time.Second},
	Leader:   {8, 2 * time.Minute},
}

// idleConnection is how long an unused connection stays open: each is a process of PostgreSQL with
// some 5 MiB. It is longer than the intervals of most loops, so that they do not open a new one
// each time.
const idleConnection = 20 * time.Second

// minRequests is the smallest number of connections with which pages load well.
const minRequests = 4

type laneKey struct{}

// On returns a context whose statements use the connections of the lane.
func On(ctx context.Context, l Lane) context.Context {
	return context.WithValue(ctx, laneKey{}, l)
}

func laneOf(ctx context.Context) Lane {
	l, _ := ctx.Value(laneKey{}).(Lane)
	return l
}

type timeoutKey struct{}

// StatementTimeout returns a context in which no statement takes longer than d. The context itself
// has no deadline, so a stream can use it.
func StatementTimeout(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, timeoutKey{}, d)
}

// statementTimeout returns how long a statement may take.
func statementTimeout(ctx context.Context) time.Duration {
	most := limitsOf[laneOf(ctx)].statement
	if d, ok := ctx.Value(timeoutKey{}).(time.Duration); ok && d < most {
		return d
	}
	return most
}

// Pools are the connections of one manager, by lane.
type Pools [lanes]*stdsql.DB

// Connect opens the pools; they connect on first use. requests limits the connections of the lane
// Requests; 0 is the default.
func Connect(dsn string, requests int) (Pools, error) {
	var p Pools
	if requests == 0 {
		requests = limitsOf[Requests].conns
	}
	if requests < minRequests {
		return p, fmt.Errorf("%d connections to PostgreSQL for requests are fewer than %d", requests, minRequests)
	}
	for l := range p {
		c, err := stdlib.GetDefaultDriver().(driver.DriverContext).OpenConnector(dsn)
		if err != nil {
			return p, fmt.Errorf("open database: %w", err)
		}
		p[l] = stdsql.OpenDB(connector{c, limitsOf[l].statement})
		conns := limitsOf[l].conns
		if Lane(l) == Requests {
			conns = requests
		}
		p[l].SetMaxOpenConns(conns)
		p[l].SetMaxIdleConns(max(1, conns/2))
		p[l].SetConnMaxIdleTime(idleConnection)
	}
	return p, nil
}

// connector limits the time to open a connection, and the time of each of its statements.
type connector struct {
	driver.Connector
	statement time.Duration
}

// connectTimeout limits the time to open a connection: database/sql opens some of them without a
// deadline.
const connectTimeout = 10 * time.Second

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if c, ok := conn.(*stdlib.Conn); ok {
		types := c.Conn().TypeMap()
		types.TryWrapEncodePlanFuncs = append([]pgtype.TryWrapEncodePlanFunc{wrapUUID}, types.TryWrapEncodePlanFuncs...)
	}
	set := fmt.Sprintf("SET statement_timeout = %d", c.statement.Milliseconds())
	if _, err := conn.(driver.ExecerContext).ExecContext(ctx, set, nil); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// Close closes the pools.
func (p Pools) Close() error {
	var first error
	for _, db := range p {
		if db == nil {
			continue
		}
		if err := db.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}
