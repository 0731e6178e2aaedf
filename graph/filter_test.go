package graph_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/berthhq/berth/manager"
	"github.com/berthhq/berth/manager/managertest"
)

// TestFiltersHaveLimits sends filters that are wide, deep or many. A rejected request does not
// reach the database.
func TestFiltersHaveLimits(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	member := reader(t, m, w.A.Member)
	wide := func(n int) vars {
		var list []vars
		for i := range n {
			list = append(list, vars{"name": fmt.Sprint("n", i)})
		}
		return vars{"or": list}
	}
	deep := func(n int) vars {
		where := vars{"name": "a"}
		for range n {
			where = vars{"not": where}
		}
		return where
	}
	ids := func(n int) []string {
		var list []string
		for range n {
			list = append(list, w.A.Project.ID.String())
		}
		return list
	}
	aliases := func(n int) string {
		text := "query($w: ProjectWhereInput!) {"
		for i := range n {
			text += fmt.Sprintf(" a%d: projects(where: $w) { totalCount }", i)
		}
		return text + " }"
	}
	const one = `query($w: ProjectWhereInput!) { projects(where: $w) { totalCount } }`
	literal := `{ projects(where: {or: [` + strings.Repeat(`{name: "a"} `, 600) + `]}) { totalCount } }`
	orders := `{ projects(orderBy: [` + strings.Repeat(`{field: NAME} `, 11) + `]) { totalCount } }`
	nested := `query($w: ProjectWhereInput!) { domains(first: 100) { edges { node { projects(first: 1, where: $w) { totalCount } } } } }`
	for _, c := range []struct {
		name, query string
		vars        managertest.Vars
		limit       string // "" = it is answered
	}{
		{"400 alternatives", one, managertest.Vars{"w": wide(400)}, ""},
		{"5,000 alternatives", one, managertest.Vars{"w": wide(5_000)}, "500"},
		{"20,000 alternatives, a body of 400 kB", one, managertest.Vars{"w": wide(20_000)}, "500"},
		{"600 alternatives in the text", literal, nil, "500"},
		{"80 aliases of a variable with 5,000 alternatives", aliases(80), managertest.Vars{"w": wide(5_000)}, "500"},
		{"80 aliases of a variable with 10 alternatives", aliases(80), managertest.Vars{"w": wide(10)}, "500"},
		{"20 aliases of a variable with 10 alternatives", aliases(20), managertest.Vars{"w": wide(10)}, ""},
		{"9 levels", one, managertest.Vars{"w": deep(9)}, ""},
		{"9,000 levels", one, managertest.Vars{"w": deep(9_000)}, "10"},
		{"a list of 2,000", one, managertest.Vars{"w": vars{"idIn": ids(2_000)}}, ""},
		{"a list of 20,000", one, managertest.Vars{"w": vars{"idIn": ids(20_000)}}, "2000"},
		{"ten lists of 400", aliases(10), managertest.Vars{"w": vars{"idIn": ids(400)}}, "2000"},
		{"lists in alternatives", one, managertest.Vars{"w": vars{"or": []vars{{"idIn": ids(1_500)}, {"idIn": ids(1_500)}}}}, "2000"},
		{"a filter on each of 100 rows", nested, managertest.Vars{"w": wide(300)}, "20000"},
		{"eleven orders", orders, nil, "10"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var errs managertest.Errors
			list := w.Statements.Of(func() { errs = member.Ask(t, c.query, c.vars, nil) })
			if c.limit == "" {
				if len(errs) > 0 {
					t.Fatalf("refused: %.300s", errs)
				}
				return
			}
			if errs.Code() != "INVALID_ARGUMENT" || errs[0].Extensions.Limit != c.limit {
				t.Errorf("%.300s, want INVALID_ARGUMENT with the limit %s", errs, c.limit)
			}
			if len(list) > 2 { // the login and its last use
				t.Errorf("refused after %d statements", len(list))
			}
		})
	}
}

// TestQueriesEnd runs a query that waits for a lock until its deadline, and one whose client
// disconnects. PostgreSQL stops both.
func TestQueriesEnd(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	w.Configure = func(c *manager.Config) { c.QueryTimeout = 300 * time.Millisecond }
	hasty := w.Quiet(t).As(t, w.A.Member)
	w.Configure = nil
	patient := w.Quiet(t).As(t, w.A.Member)
	ctx := w.System(t)
	tx, err := w.Client.Tx(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, "LOCK TABLE projects IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	waiting := func() int {
		rows, err := w.Client.QueryContext(ctx, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		n := -1
		for rows.Next() {
			if err := rows.Scan(&n); err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	const query = `{ projects { totalCount } }`
	if errs := hasty.Ask(t, query, nil, nil); errs.Code() != "DEADLINE_EXCEEDED" {
		t.Errorf("a query beyond its deadline: %s", errs)
	}
	managertest.Eventually(t, "its statement is stopped", func() bool { return waiting() == 0 })

	body, _ := json.Marshal(map[string]string{"query": query})
	leaving, leave := context.WithCancel(t.Context())
	r, _ := http.NewRequestWithContext(leaving, http.MethodPost, patient.URL+"/graphql", strings.NewReader(string(body)))
	r.Header = patient.Header.Clone()
	r.Header.Set("Content-Type", "application/json")
	gone := make(chan error, 1)
	go func() {
		resp, err := http.DefaultClient.Do(r)
		if err == nil {
			resp.Body.Close()
		}
		gone <- err
	}()
	managertest.Eventually(t, "a statement waits", func() bool { return waiting() == 1 })
	leave()
	if err := <-gone; err == nil {
		t.Error("the query was answered")
	}
	managertest.Eventually(t, "the statement is stopped", func() bool { return waiting() == 0 })
}
