package bench

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager"
)

// Numbers of sessions: on a page, and stored.
const listed, stored = 50, 2000

// BenchmarkList50 requests the newest 50 sessions alternately over GraphQL and from a bare net/http
// and database/sql handler that answers the same fields. Both run in this process on one database,
// one client at a time.
func BenchmarkList50(b *testing.B) {
	dsn := testenv.Postgres(b)
	m, c := newManager(b, dsn)
	password, _, err := m.Bootstrap(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	fill(b, dsn)
	api := httptest.NewServer(m.Handler())
	b.Cleanup(api.Close)
	raw := httptest.NewServer(bareList(b, dsn))
	b.Cleanup(raw.Close)
	login(b, c, api.URL, password)
	query, err := json.Marshal(map[string]string{"query": fmt.Sprintf(
		`{sessions(first:%d,orderBy:[{field:CREATED_AT,direction:DESC}]){edges{node{id name status type priority createdAt statusMessage kernels{id status}}}}}`, listed)})
	if err != nil {
		b.Fatal(err)
	}
	var graphql, bare, graphqlCPU, bareCPU time.Duration
	for b.Loop() {
		at := cpu(b)
		graphql += fetch(b, c, api.URL+"/graphql", query)
		between := cpu(b)
		bare += fetch(b, c, raw.URL, nil)
		graphqlCPU, bareCPU = graphqlCPU+between-at, bareCPU+cpu(b)-between
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(graphql.Microseconds())/float64(b.N), "graphql-us")
	b.ReportMetric(float64(bare.Microseconds())/float64(b.N), "bare-us")
	b.ReportMetric(float64(graphqlCPU.Microseconds())/float64(b.N), "graphql-cpu-us")
	b.ReportMetric(float64(bareCPU.Microseconds())/float64(b.N), "bare-cpu-us")
	b.ReportMetric(bare.Seconds()/graphql.Seconds(), "of-bare-rate")
}

// cpu returns the processor time of this process so far: manager, bare handler and client.
func cpu(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func newManager(b *testing.B, dsn string) (*manager.Manager, *http.Client) {
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = l.Close() })
		return l
	}
	m, err := manager.New(b.Context(), manager.Config{
		PostgresDSN: dsn, RedisURL: testenv.Redis(b), Etcd: manager.Etcd{Endpoints: []string{testenv.Etcd(b)}},
		HTTP: listen(), Cluster: listen(), Secrets: b.TempDir(), AdminEmail: "admin@example.org",
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(m.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		b.Fatal(err)
	}
	return m, &http.Client{Jar: jar}
}

// fill creates the first user, and sessions of one kernel each.
func fill(b *testing.B, dsn string) {
	client, _, err := manager.OpenStore(b.Context(), dsn, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	ctx := viewer.SystemContext(b.Context())
	u := client.User.Query().FirstX(ctx)
	p := client.Project.Query().FirstX(ctx)
	g := client.ResourceGroup.Query().FirstX(ctx)
	r := client.Registry.Create().SetName("bench").SetHost("bench:5000").SaveX(ctx)
	img := client.Image.Create().SetReference("bench:5000/x:1").SetName("x:1").SetArchitecture("amd64").SetDigest("sha256:0").SetRegistryID(r.ID).SaveX(ctx)
	slots := resource.Slots{resource.CPU: 1000, resource.Mem: 1 << 30}
	for i := 0; i < stored; i += 100 {
		client.Session.MapCreateBulk(make([]int, 100), func(c *ent.SessionCreate, j int) {
			c.SetName(fmt.Sprintf("bench-%d", i+j)).SetType("batch").SetSlots(slots).SetDomainID(p.DomainID).
				SetProjectID(p.ID).SetOwnerID(u.ID).SetResourceGroupID(g.ID).SetImageID(img.ID)
		}).ExecX(ctx)
	}
	ids := client.Session.Query().IDsX(ctx)
	for len(ids) > 0 {
		n := min(len(ids), 100)
		client.Kernel.MapCreateBulk(ids[:n], func(c *ent.KernelCreate, j int) {
			c.SetSessionID(ids[j]).SetSlots(slots).SetDomainID(p.DomainID).SetProjectID(p.ID).SetOwnerID(u.ID)
		}).ExecX(ctx)
		ids = ids[n:]
	}
}

func login(b *testing.B, c *http.Client, url, password string) {
	body, _ := json.Marshal(map[string]string{"email": "admin@example.org", "password": password})
	fetch(b, c, url+"/auth/login", body)
}

func fetch(b *testing.B, c *http.Client, url string, body []byte) time.Duration {
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(b.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Berth-CSRF", "1")
	began := time.Now()
	resp, err := c.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	took := time.Since(began)
	if err != nil || resp.StatusCode != http.StatusOK || bytes.Contains(text, []byte(`"errors"`)) {
		b.Fatalf("%s: %d %s %v", url, resp.StatusCode, text, err)
	}
	return took
}

// bareList is a handler that is written by hand for this one page.
func bareList(b *testing.B, dsn string) http.Handler {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	type kernel struct{ ID, Status string }
	type row struct {
		ID, Name, Status, Type string
		Priority               int
		CreatedAt              time.Time
		StatusMessage          string
		Kernels                []kernel
	}
	read := func(ctx context.Context) ([]*row, error) {
		rows, err := db.QueryContext(ctx, `SELECT id, name, status, type, priority, created_at, status_message FROM sessions ORDER BY created_at DESC, id LIMIT $1`, listed)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		var list []*row
		byID := map[string]*row{}
		var ids []uuid.UUID
		for rows.Next() {
			r := &row{}
			if err := rows.Scan(&r.ID, &r.Name, &r.Status, &r.Type, &r.Priority, &r.CreatedAt, &r.StatusMessage); err != nil {
				return nil, err
			}
			list, byID[r.ID] = append(list, r), r
			ids = append(ids, uuid.MustParse(r.ID))
		}
		kernels, err := db.QueryContext(ctx, `SELECT id, status, session_id FROM kernels WHERE session_id = ANY($1)`, ids)
		if err != nil {
			return nil, err
		}
		defer kernels.Close()
		for kernels.Next() {
			var k kernel
			var session string
			if err := kernels.Scan(&k.ID, &k.Status, &session); err != nil {
				return nil, err
			}
			byID[session].Kernels = append(byID[session].Kernels, k)
		}
		return list, kernels.Err()
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		list, err := read(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(list)
	})
}
