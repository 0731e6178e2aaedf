package store_test

import (
	"slices"
	"testing"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/domain"
	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager"
	"github.com/berthhq/berth/manager/store"
)

// TestListsOfIDs reads rows by lists of ids of several lengths, together with other conditions.
// Each list returns its rows, and all lists share one statement.
func TestListsOfIDs(t *testing.T) {
	client, _, err := manager.OpenStore(t.Context(), testenv.Postgres(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	ctx := viewer.SystemContext(t.Context())
	var ids []uuid.UUID
	for i := range 12 {
		ids = append(ids, client.Domain.Create().SetName("d"+string(rune('a'+i))).SaveX(ctx).ID)
	}
	for n := 4; n <= len(ids); n++ {
		got := client.Domain.Query().Where(domain.NameNEQ("da"), domain.IDIn(ids[:n]...), domain.NameNEQ("db")).
			Order(domain.ByName()).Select(domain.FieldName).StringsX(ctx)
		if len(got) != n-2 || got[0] != "dc" || !slices.IsSorted(got) {
			t.Errorf("of %d ids: %v", n, got)
		}
	}
	rows, err := client.QueryContext(ctx, `SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE 'SELECT "domains"% ANY (%'`)
	if err != nil {
		t.Fatal(err)
	}
	if prepared := 0; !rows.Next() || rows.Scan(&prepared) != nil || prepared != 1 {
		t.Errorf("%d prepared statements, want 1", prepared)
	}
	if err := rows.Close(); err != nil {
		t.Fatal(err)
	}
	all := client.Domain.Query().CountX(ctx)
	if n := client.Domain.Query().Where(domain.IDNotIn(ids...)).CountX(ctx); n != all-len(ids) {
		t.Errorf("%d domains beside those, want %d", n, all-len(ids))
	}
	if n := client.Domain.Query().Where(domain.Or(domain.IDIn(ids[:3]...), domain.IDIn(ids[3:8]...))).CountX(ctx); n != 8 {
		t.Errorf("%d domains by two lists, want 8", n)
	}
	if n := client.Domain.Query().Where(domain.NameIn("da", "db", "dc", "dd", "de")).CountX(ctx); n != 5 {
		t.Errorf("%d domains by their names, want 5", n)
	}
	if n := client.Domain.Update().Where(domain.IDIn(ids[:6]...)).SetDescription("x").SaveX(ctx); n != 6 {
		t.Errorf("%d domains changed, want 6", n)
	}
}

// TestJoinedListsArePlannedEachTime reads and writes rows by a joined list. PostgreSQL plans such a
// statement at each execution, because a stored plan would be based on the few rows of a new table.
func TestJoinedListsArePlannedEachTime(t *testing.T) {
	client, _, err := manager.OpenStore(t.Context(), testenv.Postgres(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	ctx := viewer.SystemContext(t.Context())
	id := client.Domain.Create().SetName("d").SaveX(ctx).ID
	for range 3 {
		n := client.Domain.Query().Where(func(s *sql.Selector) { s.Where(store.In(s.C(domain.FieldID), []uuid.UUID{id})) }).CountX(ctx)
		if n != 1 {
			t.Fatalf("%d domains, want 1", n)
		}
		if _, err := client.ExecContext(ctx, "UPDATE domains SET description = 'x' WHERE id IN (SELECT unnest($1::text[]::uuid[]))", []string{id.String()}); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := client.QueryContext(ctx, `SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%"domains"%unnest(%' AND statement LIKE 'SELECT COUNT(%' OR statement LIKE 'UPDATE domains%'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	if kept := -1; !rows.Next() || rows.Scan(&kept) != nil || kept != 0 {
		t.Errorf("%d plans are kept, want 0", kept)
	}
}
