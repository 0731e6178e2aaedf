package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// BenchmarkAttack has one user who floods the platform in three ways with a read-only token. It
// measures how long the requests of another user take meanwhile. The leader must not change, and
// each change must have its row in the audit log.
func BenchmarkAttack(b *testing.B) {
	u, attacker := platform.User(b), platform.User(b)
	in := cluster.Interactive()
	in.Slots = cluster.Slots("cpu", "0.02", "mem", "32m")
	s := u.Run(in)
	u.Until(s.ID, "RUNNING")
	defer u.End(s.ID)
	made, err := attacker.CreateToken(b.Context(), client.CreateAccessTokenInput{Name: "reads", Scopes: []client.Enum{"READ"}})
	if err != nil {
		b.Fatal(err)
	}
	reads, err := client.New(platform.URL, *made.Secret, "berth-bench")
	if err != nil {
		b.Fatal(err)
	}
	for name, attack := range map[string]func(context.Context){
		"none":    func(context.Context) {},
		"queries": func(ctx context.Context) { flood(ctx, reads, 50, costly, nil) },
		"filters": func(ctx context.Context) {
			flood(ctx, reads, 50, `query($w: SessionWhereInput) { sessions(first: 100, where: $w) { totalCount edges { node { id kernels { id } } } } }`, wide())
		},
		"subscriptions": func(ctx context.Context) { listen(ctx, *made.Secret, 60, 50) },
	} {
		b.Run(name, func(b *testing.B) { underAttack(b, u, s.ID, attack) })
	}
}

// costly is a query near the cost limit of one operation.
const costly = `{ a: activity(first: 100) { totalCount edges { node { id } } } b: sessions(first: 100) { totalCount edges { node { id kernels { id allocations { id } } history { id } } } } }`

// wide returns a filter of many conditions that no index supports.
func wide() map[string]any {
	var parts []map[string]any
	for i := range 40 {
		parts = append(parts, map[string]any{"nameContainsFold": fmt.Sprintf("%%a%d_b%%", i)})
	}
	return map[string]any{"w": map[string]any{"or": parts}}
}

func underAttack(b *testing.B, u *cluster.User, session string, attack func(context.Context)) {
	before := epoch(b)
	ctx, stop := context.WithCancel(b.Context())
	var attackers sync.WaitGroup
	attackers.Go(func() { attack(ctx) })
	time.Sleep(3 * time.Second) // wait until all of them have begun
	var took []time.Duration
	began, changes := time.Now(), 0
	for b.Loop() {
		name := fmt.Sprintf("attacked-%d", time.Now().UnixNano())
		for _, ask := range []func() error{
			func() error {
				_, err := u.Sessions(b.Context(), client.SessionFilter{Live: true, Owner: u.ID})
				return err
			},
			func() error { _, err := u.RenameSession(b.Context(), session, name); return err },
		} {
			began := time.Now()
			if err := ask(); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(began))
		}
		changes++
	}
	stop()
	attackers.Wait()
	if now := epoch(b); now != before {
		b.Errorf("the leader of epoch %d has lost its lease: the epoch is %d", before, now)
	}
	rows, err := u.Activity(b.Context(), client.AuditFilter{EntityID: session, From: began.Add(-time.Second), Limit: changes + 100})
	if err != nil {
		b.Fatal(err)
	}
	rows = slices.DeleteFunc(rows, func(e client.AuditEntry) bool {
		return e.Action != "renameSession" || e.Result != "OK" || e.At.Before(began)
	})
	if len(rows) != changes {
		b.Errorf("%d rows of %d changes in the audit log", len(rows), changes)
	}
	slices.Sort(took)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(milliseconds(took[len(took)/2]), "p50-ms")
	b.ReportMetric(milliseconds(took[len(took)*99/100]), "p99-ms")
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// epoch returns the epoch of the leader, which changes when the leader loses its lease.
func epoch(b *testing.B) int64 {
	b.Helper()
	got, err := platform.Admin(b).Cluster(b.Context())
	if err != nil || got.Leader == nil {
		b.Fatalf("who leads: %+v, %v", got, err)
	}
	return got.Leader.Epoch
}

// flood sends requests without a pause, over several connections at once.
func flood(ctx context.Context, c *client.Client, at int, query string, variables map[string]any) {
	var all sync.WaitGroup
	for range at {
		all.Go(func() {
			for ctx.Err() == nil {
				_, _ = c.Raw(ctx, client.Request{Query: query, Variables: variables}) // many requests are refused
			}
		})
	}
	all.Wait()
}

// listen opens sockets with subscriptions, and reopens each one that the server closes.
func listen(ctx context.Context, token string, sockets, each int) {
	var all sync.WaitGroup
	for range sockets {
		all.Go(func() {
			for ctx.Err() == nil {
				subscribe(ctx, token, each)
			}
		})
	}
	all.Wait()
}

func subscribe(ctx context.Context, token string, each int) {
	conn, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(platform.URL, "http")+"/graphql", &websocket.DialOptions{
		Subprotocols: []string{"graphql-transport-ws"}, HTTPHeader: http.Header{"Authorization": {"Bearer " + token}},
	})
	if err != nil {
		return
	}
	defer conn.CloseNow()
	conn.SetReadLimit(-1)
	send := func(m map[string]any) bool {
		text, err := json.Marshal(m)
		return err == nil && conn.Write(ctx, websocket.MessageText, text) == nil
	}
	if !send(map[string]any{"type": "connection_init"}) {
		return
	}
	for i := range each {
		payload := map[string]string{"query": `subscription { sessionChanged { id name history { id } kernels { id } } }`}
		if !send(map[string]any{"id": fmt.Sprint(i), "type": "subscribe", "payload": payload}) {
			return
		}
	}
	for {
		if _, _, err := conn.Read(ctx); err != nil {
			return
		}
	}
}
