package rekey_test

import (
	"context"
	"database/sql"
	"encoding/base32"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"entgo.io/ent/schema/field"

	"github.com/berthhq/berth/ent/keypair"
	"github.com/berthhq/berth/ent/migrate"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/egress"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/image"
	"github.com/berthhq/berth/manager/objectstorage"
	"github.com/berthhq/berth/manager/oidc"
	"github.com/berthhq/berth/manager/rekey"
	"github.com/berthhq/berth/manager/task"
)

// Bytes in the database are hashes, the business of tasks, or sealed in a column
// that a change of keys knows. A new column of another kind must be thought about.
func TestEverySealedColumnIsKnown(t *testing.T) {
	innocent := []string{"hash", "input", "state", "webhook_hash", "data"} // data: attachments of chats, which are as private as prompts
	var sealed, known []string
	for _, table := range migrate.Tables {
		for _, c := range table.Columns {
			switch {
			case strings.HasSuffix(c.Name, "_sealed"):
				sealed = append(sealed, table.Name+"."+c.Name)
			case c.Type == field.TypeBytes && !slices.Contains(innocent, c.Name):
				t.Errorf("%s.%s holds bytes: name it _sealed and add it to seal.Columns, or add it to the exceptions here", table.Name, c.Name)
			}
		}
	}
	for _, c := range seal.Columns() {
		known = append(known, c.Table+"."+c.Name)
	}
	slices.Sort(sealed)
	slices.Sort(known)
	if !slices.Equal(sealed, known) {
		t.Errorf("sealed are %v, seal.Columns has %v", sealed, known)
	}
}

// vault is a database with an encrypted value of every kind, and their plaintexts.
type vault struct {
	*identitytest.World
	db   *sql.DB
	dir  string
	auth *auth.Service
	kept map[string]string // column, and the secret of its only row here
}

func newVault(t *testing.T) *vault {
	t.Helper()
	client, db := identitytest.Store(t)
	v := &vault{World: identitytest.Fill(t, client), db: db, dir: t.TempDir(), kept: map[string]string{}}
	ring, err := seal.Load(v.dir)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	v.auth = auth.New(auth.Config{Client: client, Bus: event.New(nil, log), Passwords: identitytest.Hasher(), Keys: ring, Logger: log})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	root, member := v.As(t, v.Superadmin), v.As(t, v.A.Member)
	k, err := v.auth.CreateKeypair(member, auth.CreateKeypairInput{Name: "k"})
	must(err)
	v.kept["keypairs.secret_sealed"] = *k.Secret
	totp, err := v.auth.StartTotp(member)
	must(err)
	raw, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(totp.Secret)
	must(err)
	v.kept["users.totp_sealed"] = string(raw)
	name, password := "n", "a registry's password"
	_, err = image.New(image.Config{Client: client, Keys: ring}).CreateRegistry(root, image.CreateRegistryInput{Name: "r", Host: "r.example.org", Username: &name, Password: &password,
		RegistrySettings: image.RegistrySettings{Mirrors: []image.RegistryMirrorInput{{Host: "m.example.org", Username: &name, Password: &password}}}})
	must(err)
	v.kept["registries.password_sealed"] = password
	v.kept["registries.mirrors_sealed"] = `{"m.example.org":{"Username":"n","Password":"a registry's password"}}`
	_, err = image.New(image.Config{Client: client, Keys: ring}).CreateRegistry(root, image.CreateRegistryInput{Name: "open", Host: "open.example.org"})
	must(err)
	_, err = oidc.New(oidc.Config{Client: client, Keys: ring, Auth: v.auth, Logger: log}).CreateIdentityProvider(root, oidc.CreateIdentityProviderInput{
		Name: "p", Issuer: "https://issuer.example.org", ClientID: "c", ClientSecret: "a client's secret", Domain: v.A.ID})
	must(err)
	v.kept["identity_providers.client_secret_sealed"] = "a client's secret"
	policy, err := egress.Parse(nil)
	must(err)
	key, secret := "k", "a bucket's secret"
	_, err = objectstorage.New(objectstorage.Config{Client: client, Keys: ring, Tasks: task.New(task.Config{Client: client}), Egress: policy, Logger: log}).CreateObjectStorage(member,
		objectstorage.CreateObjectStorageInput{Name: "lake", Endpoint: "https://s3.example.org", Bucket: "lake", AccessKeyID: &key, Secret: &secret})
	must(err)
	v.kept["object_storages.secret_sealed"] = secret
	const canary = "a canary"
	must(client.ClusterIdentity.Create().SetName("cluster").SetCaFingerprint("f").SetCanarySealed(ring.Seal(seal.Canary, []byte(canary))).Exec(viewer.SystemContext(t.Context())))
	v.kept["cluster_identities.canary_sealed"] = canary
	v.session(t, ring)
	return v
}

// session creates rows of a session and of a template with encrypted environments.
func (v *vault) session(t *testing.T, ring *seal.Ring) {
	t.Helper()
	system := viewer.SystemContext(t.Context())
	img := v.Client.Image.Create().SetReference("r.example.org/i:1").SetName("i:1").SetArchitecture("amd64").SetDigest("sha256:1").
		SetRegistry(v.Client.Registry.Query().FirstX(system)).SaveX(system)
	v.Client.Session.Create().SetName("s").SetType("batch").SetDomainID(v.A.ID).SetProject(v.A.Project).SetOwner(v.A.Member).
		SetResourceGroup(v.Client.ResourceGroup.Create().SetName("g").SaveX(system)).SetImage(img).SetSlots(nil).
		SetSecretsSealed(ring.Seal(seal.SessionSecrets, []byte("an environment"))).ExecX(system)
	v.kept["sessions.secrets_sealed"] = "an environment"
	v.Client.SessionTemplate.Create().SetName("t").SetDomainID(v.A.ID).SetOwner(v.A.Member).SetRequest([]byte(`{}`)).
		SetSecretsSealed(ring.Seal(seal.TemplateSecrets, []byte("an environment of a template"))).ExecX(system)
	v.kept["session_templates.secrets_sealed"] = "an environment of a template"
	v.Client.ImageBuild.Create().SetDomainID(v.A.ID).SetProject(v.A.Project).SetOwner(v.A.Member).SetRepository("users/u/i").SetTag("1").SetName("i:1").
		SetKind("recipe").SetDockerfile("FROM i").SetDigest("-").SetBase("i").SetInputSealed(ring.Seal(seal.BuildInput, []byte("secrets of a build"))).ExecX(system)
	v.kept["image_builds.input_sealed"] = "secrets of a build"
	d := v.Client.Deployment.Create().SetName("d").SetDomainID(v.A.ID).SetProject(v.A.Project).SetOwner(v.A.Member).SetWanted(1).SetCurrent(1).SetTarget(1).
		SetStrategy([]byte(`{}`)).SetScaling([]byte(`{}`)).SetProgress([]byte(`{}`)).SaveX(system)
	v.Client.DeploymentRevision.Create().SetDeployment(d).SetNumber(1).SetVariant("custom").SetRequest([]byte(`{}`)).SetEngine([]byte(`{}`)).SetImage("i:1").
		SetSecretsSealed(ring.Seal(seal.RevisionSecrets, []byte("an environment of a replica"))).ExecX(system)
	v.kept["deployment_revisions.secrets_sealed"] = "an environment of a replica"
	v.Client.ChatEndpoint.Create().SetName("e").SetAddress("https://api.example.org/v1").SetKeySealed(ring.Seal(seal.EndpointKey, []byte("a key of an endpoint"))).ExecX(system)
	v.kept["chat_endpoints.key_sealed"] = "a key of an endpoint"
	v.Client.NoticeChannel.Create().SetType("webhook").SetName("n").SetHost("example.org").SetAddressSealed(ring.Seal(seal.ChannelAddress, []byte("an address"))).
		SetSecretSealed(ring.Seal(seal.ChannelSecret, []byte("a secret of a webhook"))).ExecX(system)
	v.kept["notice_channels.address_sealed"], v.kept["notice_channels.secret_sealed"] = "an address", "a secret of a webhook"
}

func (v *vault) rekeyer(say func(string, ...any)) rekey.Rekeyer {
	return rekey.Rekeyer{DB: v.db, Dir: v.dir, Progress: say, Straggle: time.Millisecond}
}

func (v *vault) keys(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(v.dir, "seal.keys"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// opens checks with the ring of a fresh process that every value opens, and how
// many of them the newest key sealed.
func (v *vault) opens(t *testing.T) (young, all int) {
	t.Helper()
	ring, err := seal.Load(v.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range seal.Columns() {
		rows, err := v.db.QueryContext(t.Context(), fmt.Sprintf("SELECT %[1]s FROM %[2]s WHERE length(%[1]s) > 0", c.Name, c.Table))
		if err != nil {
			t.Fatal(err)
		}
		var secrets []string
		for rows.Next() {
			var sealed []byte
			if err := rows.Scan(&sealed); err != nil {
				t.Fatal(err)
			}
			all++
			if strings.HasPrefix(string(sealed), string(ring.Mark())) {
				young++
			}
			secret, err := ring.Open(c.Purpose, sealed)
			if err != nil {
				t.Errorf("%s.%s: %v", c.Table, c.Name, err)
			}
			secrets = append(secrets, string(secret))
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(secrets, v.kept[c.Table+"."+c.Name]) {
			t.Errorf("%s.%s has lost its secret", c.Table, c.Name)
		}
	}
	return young, all
}

func silent(string, ...any) {}

func TestKeysChange(t *testing.T) {
	v := newVault(t)
	before := v.keys(t)
	var said []string
	if err := v.rekeyer(func(f string, a ...any) { said = append(said, fmt.Sprintf(f, a...)) }).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := v.keys(t); len(after) != 1 || after[0] == before[0] {
		t.Errorf("the keys were %v and are %v", len(before), len(after))
	}
	if young, all := v.opens(t); young != all || all != len(seal.Columns()) {
		t.Errorf("%d of %d are sealed with the new key", young, all)
	}
	if len(said) != len(seal.Columns())+1 {
		t.Errorf("it said %q", said)
	}
}

// Wherever it is interrupted, nothing is lost, and the next run completes it.
func TestChangeOfKeysGoesOn(t *testing.T) {
	v := newVault(t)
	for i := range 450 { // more than a batch
		ring, err := seal.Load(v.dir)
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprint("k", i)
		v.Client.Keypair.Create().SetAccessKey(name).SetName(name).SetUser(v.A.Lead).SetIsDefault(i == 0).
			SetSecretSealed(ring.Seal(seal.KeypairSecret, []byte(name))).ExecX(viewer.SystemContext(t.Context()))
	}
	was := 0
	for cut := 1; ; cut++ {
		ctx, cancel := context.WithCancel(t.Context())
		lines := 0
		err := v.rekeyer(func(string, ...any) {
			if lines++; lines == 1 {
				cancel()
			}
		}).Run(ctx)
		cancel()
		young, all := v.opens(t)
		if err == nil {
			if young != all || all < 450 || len(v.keys(t)) != 1 || cut < 4 {
				t.Errorf("ended after %d runs with %d of %d and %d keys", cut, young, all, len(v.keys(t)))
			}
			return
		}
		if young <= was || len(v.keys(t)) != 2 {
			t.Fatalf("run %d: %d of %d, before %d, %d keys: %v", cut, young, all, was, len(v.keys(t)), err)
		}
		was = young
	}
}

// A value that cannot be decrypted is named, the old keys stay, and the other values are encrypted
// again.
func TestWhatDoesNotOpenKeepsTheOldKeys(t *testing.T) {
	v := newVault(t)
	system := viewer.SystemContext(t.Context())
	broken := v.Client.Keypair.Create().SetAccessKey("x").SetName("x").SetUser(v.A.Lead).SetSecretSealed([]byte("not sealed")).SaveX(system)
	err := v.rekeyer(silent).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), broken.ID.String()) {
		t.Errorf("it ended with %v", err)
	}
	if n := len(v.keys(t)); n != 2 {
		t.Errorf("%d keys are left", n)
	}
	v.Client.Keypair.Delete().Where(keypair.ID(broken.ID)).ExecX(system)
	if err := v.rekeyer(silent).Run(t.Context()); err != nil {
		t.Error(err)
	}
	if young, all := v.opens(t); young != all {
		t.Errorf("%d of %d are sealed with the new key", young, all)
	}
}

// A manager continues to create and change secrets in the meantime.
func TestKeysChangeUnderARunningManager(t *testing.T) {
	v := newVault(t)
	system := viewer.SystemContext(t.Context())
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for _, u := range []string{"member-b", "lead-b", "loner-b"} {
		ctx := v.As(t, v.Client.User.Query().Where(user.Username(u)).OnlyX(system))
		wg.Go(func() {
			k, err := v.auth.CreateKeypair(ctx, auth.CreateKeypairInput{Name: "k"})
			if err != nil {
				t.Error(err)
				return
			}
			for {
				if _, err := v.auth.RotateKeypair(ctx, auth.RotateKeypairInput{ID: k.Keypair.ID}); err != nil {
					t.Error(err)
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	r := v.rekeyer(silent)
	r.Straggle = 0 // as in life
	if err := r.Run(t.Context()); err != nil {
		t.Error(err)
	}
	close(stop)
	wg.Wait()
	if young, all := v.opens(t); young != all {
		t.Errorf("%d of %d are sealed with the new key", young, all)
	}
}

func TestOneChangesKeysAtATime(t *testing.T) {
	v := newVault(t)
	inside, leave := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	var once sync.Once
	go func() {
		done <- v.rekeyer(func(string, ...any) { once.Do(func() { close(inside); <-leave }) }).Run(context.Background())
	}()
	<-inside
	if err := v.rekeyer(silent).Run(t.Context()); err == nil {
		t.Error("two change the keys at once")
	}
	close(leave)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
