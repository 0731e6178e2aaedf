package managertest

import (
	"context"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
)

// Statements records the SQL statements of managers. It is a pgx tracer.
type Statements struct {
	mu   sync.Mutex
	list []string
}

// TraceQueryStart implements pgx.QueryTracer.
func (s *Statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, q.SQL)
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (s *Statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// Of returns the statements that are sent while do runs.
func (s *Statements) Of(do func()) []string {
	s.mu.Lock()
	s.list = nil
	s.mu.Unlock()
	do()
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, q := range s.list {
		if !strings.HasPrefix(q, "--") && !strings.HasPrefix(q, "SET statement_timeout") { // a ping, or a new connection
			out = append(out, q)
		}
	}
	return out
}
