package store_test

import (
	"strings"
	"testing"

	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/domain"
	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager"
	"github.com/berthhq/berth/manager/store"
)

// TestListsMeetWrongEstimates locks rows by their ids in a table that has changed since PostgreSQL
// last analyzed it. PostgreSQL estimates that another condition matches one row, but it matches all
// rows. The plan must not scan the list for each row.
func TestListsMeetWrongEstimates(t *testing.T) {
	client, _, err := manager.OpenStore(t.Context(), testenv.Postgres(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	ctx := viewer.SystemContext(t.Context())
	const domains = 3000
	var ids []uuid.UUID
	for range domains / 500 {
		var rows []*ent.DomainCreate
		for range 500 {
			rows = append(rows, client.Domain.Create().SetName(uuid.NewString()))
		}
		for _, d := range client.Domain.CreateBulk(rows...).SaveX(ctx) {
			ids = append(ids, d.ID)
		}
	}
	if _, err := client.ExecContext(ctx, "ALTER TABLE domains SET (autovacuum_enabled = false)"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.ExecContext(ctx, "ANALYZE domains"); err != nil {
		t.Fatal(err)
	}
	client.Domain.Update().SetActive(false).ExecX(ctx)
	query, args := sql.Dialect(dialect.Postgres).Select(domain.FieldID).From(sql.Table(domain.Table)).
		Where(sql.And(sql.IsFalse(domain.FieldActive), store.In(domain.FieldID, ids[:100]))).OrderBy(domain.FieldID).ForUpdate().Query()
	rows, err := client.QueryContext(ctx, "EXPLAIN "+query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(line[:min(len(line), 120)] + "\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(plan.String(), "rows=1 ") || strings.Contains(plan.String(), "Nested Loop") {
		t.Errorf("the plan goes through the list for each row:\n%s", &plan)
	}
}
