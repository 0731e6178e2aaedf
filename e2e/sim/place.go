package sim

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/migrate"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/policy"
)

// place is a database for seeds that run one after the other. Its users are the same for all seeds.
type place struct {
	db      *sql.DB
	people  []*viewer.Viewer // users who create sessions
	admin   *viewer.Viewer
	groups  []uuid.UUID
	project uuid.UUID
}

// images that registries have.
var images = []string{"registry.test/a:latest", "registry.test/b:latest"}

// goneImage is registered, but its registry does not have it.
const goneImage = "registry.test/gone:latest"

const (
	maxSessions = 4    // per user, at the same time
	maxCPU      = 6000 // of their project, at the same time
)

// database creates an empty database with the schema and the rules of the product.
func database(t *testing.T) (dsn string) {
	t.Helper()
	return testenv.PostgresFrom(t, "simulation", func(ctx context.Context, dsn string) error {
		db, err := sql.Open("pgx", dsn)
		if err != nil {
			return err
		}
		defer db.Close()
		if err := migrate.Up(ctx, db, migrate.Files()); err != nil {
			return err
		}
		if _, err := db.ExecContext(ctx, rules); err != nil {
			return fmt.Errorf("rules: %w", err)
		}
		for _, a := range lifecycle.All {
			for _, b := range lifecycle.All {
				if lifecycle.CanMove(a, b) {
					if _, err := db.ExecContext(ctx, `INSERT INTO sim.moves VALUES ($1, $2)`, string(a), string(b)); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
}

// newPlace fills a database. It uses a single connection, so that the order of statements depends
// only on the seed.
func newPlace(t *testing.T, dsn string) *place {
	t.Helper()
	uuid.SetRand(rand.NewChaCha8([32]byte{1}))
	db, err := sql.Open("pgx", dsn+"&synchronous_commit=off")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxIdleConns(4)
	client := ent.NewClient(ent.Driver(entsql.OpenDB(dialect.Postgres, db)))
	ctx := viewer.SystemContext(context.Background())
	world := identitytest.Fill(t, client)
	p := &place{db: db, admin: world.Viewer(t, world.Superadmin), project: world.A.Project.ID}
	p.people = []*viewer.Viewer{world.Viewer(t, world.A.Member), world.Viewer(t, world.A.Lead), world.Viewer(t, world.B.Member)}
	for _, name := range []string{"default", "second"} {
		p.groups = append(p.groups, client.ResourceGroup.Create().SetName(name).SaveX(ctx).ID)
		time.Sleep(time.Millisecond) // the order is by age
	}
	reg := client.Registry.Create().SetName("test").SetHost("registry.test").SaveX(ctx)
	for i, ref := range append(images, goneImage) {
		client.Image.Create().SetReference(ref).SetName(ref[len("registry.test/"):]).SetArchitecture(architecture).
			SetDigest(fmt.Sprintf("sha256:%d", i)).SetRegistry(reg).ExecX(ctx)
	}
	p.limit(t, client, world)
	return p
}

// limit attaches policies to the users, and stores them for the invariants in the database.
func (p *place) limit(t *testing.T, client *ent.Client, world *identitytest.World) {
	t.Helper()
	ctx := viewer.With(context.Background(), p.admin)
	policies := policy.New(policy.Config{Client: client, Bus: event.New(nil, nil)})
	few := maxSessions
	personal, err := policies.CreateResourcePolicy(ctx, policy.CreateResourcePolicyInput{Name: "few", Amounts: policy.Amounts{MaxSessions: &few}})
	if err != nil {
		t.Fatal(err)
	}
	common, err := policies.CreateResourcePolicy(ctx, policy.CreateResourcePolicyInput{Name: "cores", TotalSlots: resource.Slots{resource.CPU: maxCPU}})
	if err != nil {
		t.Fatal(err)
	}
	bind := func(in policy.AttachResourcePolicyInput) {
		if _, err := policies.AttachResourcePolicy(ctx, in); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range p.people {
		bind(policy.AttachResourcePolicyInput{Policy: &personal.Policy.ID, User: &v.User})
	}
	bind(policy.AttachResourcePolicyInput{Policy: &common.Policy.ID, Project: &world.A.Project.ID})
	if _, err := p.db.Exec(`INSERT INTO sim.limits VALUES ($1, $2)`, world.A.Project.ID, maxCPU); err != nil {
		t.Fatal(err)
	}
	for _, v := range p.people {
		if _, err := p.db.Exec(`INSERT INTO sim.limits VALUES ($1, $2)`, v.User, maxSessions); err != nil {
			t.Fatal(err)
		}
	}
}

// clean removes the rows of the last seed.
func (p *place) clean(t *testing.T) {
	t.Helper()
	_, err := p.db.Exec(`TRUNCATE sessions, agents, slot_types, fences, sim.history CASCADE`)
	if err == nil {
		_, err = p.db.Exec(`UPDATE resource_groups SET active = true, strategy = 'pack', queue_order = 'fifo', hold_after = 600,
  lost_policy = 'wait', max_attempts = 3, lost_after = 300, preemption = 'off'`)
	}
	if err != nil {
		t.Fatal(err)
	}
}
