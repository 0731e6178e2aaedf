package manager_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/storageproxy"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/ent/volume"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/managertest"
	"github.com/berthhq/berth/storage"
)

// programs is where the plugins that tests run are built.
var programs string

// The programs of the vfs plugin and of the mock one, built once.
var (
	plugin = built("volume/vfs")
	mock   = built("accelerator/mock")
)

// built builds a plugin of this repository when it is first asked for.
func built(name string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		path := filepath.Join(programs, filepath.Base(name))
		out, err := exec.Command("go", "build", "-o", path, "github.com/berthhq/berth/plugins/"+name).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("build plugin: %w: %s", err, out)
		}
		return path, nil
	})
}

func TestMain(m *testing.M) {
	var err error
	if programs, err = os.MkdirTemp("", "berth-manager-"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(programs)
	os.Exit(code)
}

// depot is a storage proxy with one volume, in the cluster of c.
type depot struct {
	*cluster
	root string // of the volume
	cfg  storage.Config
	url  string
	stop func()
}

func newDepot(t *testing.T, c *cluster) *depot {
	t.Helper()
	return newProxy(t, c, "s1", storage.VolumeConfig{Name: "main", MountPath: filepath.Join(t.TempDir(), "volume")})
}

// newProxy is a storage proxy of a name, with one volume.
func newProxy(t *testing.T, c *cluster, name string, vol storage.VolumeConfig) *depot {
	t.Helper()
	return newProxyWith(t, c, name, nil, vol)
}

// newProxyWith is newProxy with its metrics in a registry; nil: it has none.
func newProxyWith(t *testing.T, c *cluster, name string, metrics prometheus.Registerer, vol storage.VolumeConfig) *depot {
	t.Helper()
	if vol.Backend == "" {
		vfs, err := plugin()
		if err != nil {
			t.Fatal(err)
		}
		vol.Backend, vol.Create = vfs, true
	}
	token, err := c.m.NewJoinToken(t.Context(), "storage")
	if err != nil {
		t.Fatal(err)
	}
	d := &depot{cluster: c, root: vol.MountPath}
	var mu sync.Mutex
	var handler http.Handler = http.NotFoundHandler()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		h := handler
		mu.Unlock()
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	d.url = srv.URL
	d.cfg = storage.Config{
		Name: name, Dir: t.TempDir(), PublicURL: srv.URL, Managers: []string{c.m.ClusterAddress()},
		JoinToken: token, CAFingerprint: c.m.Fingerprint(),
		Registerer: metrics, Volumes: []storage.VolumeConfig{vol}, ObjectStorages: []string{"127.0.0.1"},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	}
	d.start(t, func(h http.Handler) {
		mu.Lock()
		defer mu.Unlock()
		handler = h
	})
	return d
}

// start runs the proxy and waits until the manager has a report of this very run: what
// is left over of an earlier one says nothing.
func (d *depot) start(t *testing.T, serve func(http.Handler)) {
	t.Helper()
	d.cfg.Version = uuid.NewString()
	d.run(t, serve)
	managertest.Eventually(t, "volume is healthy", func() bool {
		v, err := d.Client.Volume.Query().Where(volume.Name(d.cfg.Volumes[0].Name)).Only(d.System(t))
		return err == nil && v.Health == "healthy" &&
			d.Client.StorageProxy.Query().Where(storageproxy.Name(d.cfg.Name), storageproxy.Version(d.cfg.Version)).ExistX(d.System(t))
	})
}

func (d *depot) run(t *testing.T, serve func(http.Handler)) {
	t.Helper()
	p, err := storage.New(d.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if serve != nil {
		serve(p.Handler())
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	var once sync.Once
	d.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("storage proxy: %v", err)
			}
		})
	}
	t.Cleanup(d.stop)
}

const createFolder = `mutation($in: CreateVfolderInput!) { createVfolder(input: $in) { vfolder { id } } }`

func folder(t *testing.T, as *managertest.Client, in managertest.Vars) (uuid.UUID, managertest.Errors) {
	t.Helper()
	var got struct {
		CreateVfolder struct{ Vfolder struct{ ID uuid.UUID } }
	}
	var errs managertest.Errors
	managertest.Eventually(t, "proxy is connected", func() bool {
		errs = as.Ask(t, createFolder, managertest.Vars{"in": in}, &got)
		return errs.Code() != "UNAVAILABLE"
	})
	return got.CreateVfolder.Vfolder.ID, errs
}

const (
	trashFolder  = `mutation($id: ID!) { trashVfolder(input: {id: $id}) { vfolder { status } } }`
	deleteFolder = `mutation($id: ID!) { deleteVfolder(input: {id: $id}) { vfolder { status } task { id } } }`
)

func (d *depot) row(t *testing.T, id uuid.UUID) *ent.Vfolder {
	t.Helper()
	return d.Client.Vfolder.GetX(d.System(t), id)
}

func TestFolderFromBeginToEnd(t *testing.T) {
	c := newCluster(t, 1)
	d := newDepot(t, c)
	id, errs := folder(t, c.as, managertest.Vars{"name": "data"})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	path := filepath.Join(d.root, d.row(t, id).Path)
	if st, err := os.Stat(path); err != nil || !st.IsDir() || d.row(t, id).Path == "" {
		t.Fatalf("folder at %q: %v", path, err)
	}
	if _, errs := folder(t, c.as, managertest.Vars{"name": "data"}); errs.Code() != "ALREADY_EXISTS" {
		t.Errorf("a second folder of the name: %s", errs)
	}
	for _, name := range []string{"../x", "..", "", "a/b", "-rf", "ünï", strings.Repeat("x", 65), "a\x00b"} {
		if _, errs := folder(t, c.as, managertest.Vars{"name": name}); errs.Code() != "INVALID_ARGUMENT" || errs[0].Extensions.Field != "name" {
			t.Errorf("name %q: %s", name, errs)
		}
	}
	d.transfer(t, id)

	// Mounted by a session that waits for its agent to know the volume: refused.
	session := c.create(t, input(managertest.Vars{"mounts": []managertest.Vars{{"vfolder": "data"}}}, "sleep", "600"))
	if errs := c.as.Ask(t, trashFolder, managertest.Vars{"id": id}, nil); errs.Code() != "FAILED_PRECONDITION" {
		t.Errorf("trash while mounted: %s", errs)
	}
	c.end(t, session, true)
	c.over(t, session)

	c.as.Must(t, `mutation($id: ID!) { updateVfolder(input: {id: $id, name: "other"}) { vfolder { name } } }`, managertest.Vars{"id": id}, nil)
	if errs := c.as.Ask(t, deleteFolder, managertest.Vars{"id": id}, nil); errs.Code() != "FAILED_PRECONDITION" {
		t.Errorf("delete what is not in the trash: %s", errs)
	}
	c.as.Must(t, trashFolder, managertest.Vars{"id": id}, nil)
	if _, errs := folder(t, c.as, managertest.Vars{"name": "other"}); len(errs) > 0 {
		t.Errorf("the name is not free: %s", errs)
	}
	const restore = `mutation($in: RestoreVfolderInput!) { restoreVfolder(input: $in) { vfolder { name status deletedAt } } }`
	if errs := c.as.Ask(t, restore, managertest.Vars{"in": managertest.Vars{"id": id}}, nil); errs.Code() != "ALREADY_EXISTS" || errs[0].Extensions.Field != "name" {
		t.Errorf("restore under a name that is taken: %s", errs)
	}
	c.as.Must(t, restore, managertest.Vars{"in": managertest.Vars{"id": id, "name": "again"}}, nil)
	if f := d.row(t, id); f.Status != vfolder.StatusReady || f.DeletedAt != nil || f.Name != "again" {
		t.Errorf("restored: %v", f)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	c.as.Must(t, trashFolder, managertest.Vars{"id": id}, nil)
	c.as.Must(t, deleteFolder, managertest.Vars{"id": id}, nil)
	managertest.Eventually(t, "data is gone", func() bool {
		_, err := os.Stat(path)
		return os.IsNotExist(err) && d.row(t, id).Status == vfolder.StatusDeleted
	})
	if errs := c.as.Ask(t, deleteFolder, managertest.Vars{"id": id}, nil); errs.Code() != "NOT_FOUND" {
		t.Errorf("delete again: %s", errs)
	}
	c.check(t, true)
}

// transfer uploads a file with a ticket, and shows what the ticket is not for.
func (d *depot) transfer(t *testing.T, id uuid.UUID) {
	t.Helper()
	var up struct {
		CreateUpload struct {
			Uploads []struct{ URL, Ticket, Path string }
		}
	}
	const createUpload = `mutation($id: ID!, $files: [UploadFileInput!]!) { createUpload(input: {vfolder: $id, files: $files}) { uploads { path url ticket } } }`
	d.as.Must(t, createUpload, managertest.Vars{"id": id, "files": []managertest.Vars{{"path": "in/a.txt", "size": 5}}}, &up)
	target := up.CreateUpload.Uploads[0]
	ask := func(method, url string, header map[string]string, body string) *http.Response {
		r, err := http.NewRequest(method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+target.Ticket)
		r.Header.Set("Tus-Resumable", "1.0.0")
		for k, v := range header {
			r.Header.Set(k, v)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp
	}
	if resp := ask(http.MethodPost, target.URL, map[string]string{"Upload-Length": "6"}, ""); resp.StatusCode < 400 {
		t.Errorf("another size than the ticket's: %d", resp.StatusCode)
	}
	resp := ask(http.MethodPost, target.URL, map[string]string{"Upload-Length": "5"}, "")
	if resp.StatusCode != http.StatusCreated {
		t.Fatalf("begin upload: %d", resp.StatusCode)
	}
	where, err := resp.Request.URL.Parse(resp.Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	resp = ask(http.MethodPatch, where.String(), map[string]string{"Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"}, "hello")
	if resp.StatusCode != http.StatusNoContent {
		t.Fatalf("upload: %d", resp.StatusCode)
	}
	var down struct{ CreateDownload struct{ URL string } }
	d.as.Must(t, `mutation($id: ID!) { createDownload(input: {vfolder: $id, path: "in/a.txt"}) { url } }`, managertest.Vars{"id": id}, &down)
	resp, err = http.Get(down.CreateDownload.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); string(body) != "hello" {
		t.Errorf("download: %d %q", resp.StatusCode, body)
	}
	// What the proxy would refuse gets no ticket either.
	for _, path := range []string{
		"../x", "/etc/passwd", "a/../../b", "", "a\x00", "a\nb", "a\u0085b", "half \ufffd", strings.Repeat("n", 256),
		strings.Repeat("d/", 512) + "f",
	} {
		errs := d.as.Ask(t, createUpload, managertest.Vars{"id": id, "files": []managertest.Vars{{"path": path, "size": 1}}}, nil)
		if errs.Code() != "INVALID_ARGUMENT" {
			t.Errorf("upload to %q: %s", path, errs)
		}
	}
	if errs := d.as.Ask(t, createUpload, managertest.Vars{"id": id, "files": []managertest.Vars{{"path": "x", "size": int64(1) << 50}}}, nil); errs.Code() != "INVALID_ARGUMENT" {
		t.Errorf("a PiB: %s", errs)
	}
}

// Who may do what to a user's and to a project's folder.
func TestWhoMayTouchAFolder(t *testing.T) {
	c := newCluster(t, 0)
	newDepot(t, c)
	people := map[string]*managertest.Client{
		"member": c.as, "lead": c.m.As(t, c.A.Lead), "domain admin": c.m.As(t, c.A.Admin), "stranger": c.m.As(t, c.B.Admin),
		"monitor": c.m.As(t, c.Monitor), "superadmin": c.m.As(t, c.Superadmin), "loner": c.m.As(t, c.A.Loner),
	}
	own, errs := folder(t, people["member"], managertest.Vars{"name": "own"})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	shared, errs := folder(t, people["lead"], managertest.Vars{"name": "shared", "project": c.A.Project.ID})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if _, errs := folder(t, people["member"], managertest.Vars{"name": "mine", "project": c.A.Project.ID}); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("a member makes a project's folder: %s", errs)
	}
	if _, errs := folder(t, people["monitor"], managertest.Vars{"name": "mine"}); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("a monitor makes a folder: %s", errs)
	}
	operations := []struct{ name, query string }{
		{"see", `query($id: ID!) { node(id: $id) { ... on Vfolder { name } } }`},
		{"list", `query($id: ID!) { node(id: $id) { ... on Vfolder { files { files { name } } } } }`},
		{"write", `mutation($id: ID!) { createDirectories(input: {vfolder: $id, paths: ["d"]}) { results { error } } }`},
		{"rename", `mutation($id: ID!) { updateVfolder(input: {id: $id, name: "renamed"}) { vfolder { id } } }`},
	}
	const (
		yes  = ""
		no   = "PERMISSION_DENIED"
		null = "NOT_FOUND"
	)
	for who, want := range map[string]map[uuid.UUID][4]string{
		"member":       {own: {yes, yes, yes, yes}, shared: {yes, yes, yes, no}},
		"lead":         {own: {null, null, null, null}, shared: {yes, yes, yes, yes}},
		"domain admin": {own: {yes, no, no, yes}, shared: {yes, no, no, yes}},
		"superadmin":   {own: {yes, no, no, yes}, shared: {yes, no, no, yes}},
		"monitor":      {own: {yes, no, no, no}, shared: {yes, no, no, no}},
		"stranger":     {own: {null, null, null, null}, shared: {null, null, null, null}},
		"loner":        {own: {null, null, null, null}, shared: {null, null, null, null}},
	} {
		for id, codes := range want {
			for i, op := range operations {
				var got struct{ Node any }
				errs := people[who].Ask(t, op.query, managertest.Vars{"id": id}, &got)
				code := errs.Code()
				if i < 2 && code == "" && got.Node == nil {
					code = null
				}
				if code == "ALREADY_EXISTS" && op.name == "write" {
					code = yes // someone else was there before
				}
				if code != codes[i] {
					t.Errorf("%s %ss %s: %q, want %q (%s)", who, op.name, map[bool]string{true: "own", false: "shared"}[id == own], code, codes[i], errs)
				}
			}
		}
	}
}

func TestFilesOfManyFolders(t *testing.T) {
	c := newCluster(t, 0)
	newDepot(t, c)
	for i := range 6 {
		if _, errs := folder(t, c.as, managertest.Vars{"name": fmt.Sprint("data", i)}); len(errs) > 0 {
			t.Fatal(errs)
		}
	}
	count := func(n int) int {
		reads := 0
		for _, q := range c.Statements.Of(func() {
			c.as.Must(t, `query($n: Int) { vfolders(first: $n) { edges { node { files { files { name } } } } } }`, managertest.Vars{"n": n}, nil)
		}) {
			if strings.Contains(q, `FROM "vfolders"`) {
				reads++
			}
		}
		return reads
	}
	few, many := count(2), count(6)
	for range 30 { // the leader's own reads come in between
		few, many = min(few, count(2)), min(many, count(6))
	}
	if many > few {
		t.Errorf("2 folders cost %d reads of folders, 6 cost %d", few, many)
	}
}

// A deletion that finds no proxy continues when there is one.
func TestDeletionIsResumed(t *testing.T) {
	c := newCluster(t, 0)
	d := newDepot(t, c)
	id, errs := folder(t, c.as, managertest.Vars{"name": "data"})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	path := filepath.Join(d.root, d.row(t, id).Path)
	d.stop()
	c.as.Must(t, trashFolder, managertest.Vars{"id": id}, nil)
	c.as.Must(t, deleteFolder, managertest.Vars{"id": id}, nil)
	if s := d.row(t, id).Status; s != vfolder.StatusDeleting {
		t.Fatalf("%s", s)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	d.start(t, nil)
	managertest.Eventually(t, "data is gone", func() bool {
		_, err := os.Stat(path)
		return os.IsNotExist(err) && d.row(t, id).Status == vfolder.StatusDeleted
	})
}

// A session and the deletion of its folder at the same time: one of them wins.
func TestDeleteWhileASessionIsMade(t *testing.T) {
	c := newCluster(t, 1)
	newDepot(t, c)
	for i := range 10 {
		id, errs := folder(t, c.as, managertest.Vars{"name": fmt.Sprint("data", i)})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		var session uuid.UUID
		var made, deleted managertest.Errors
		var wg sync.WaitGroup
		wg.Go(func() {
			session, made = tryCreate(t, c.as, input(managertest.Vars{"mounts": []managertest.Vars{{"vfolder": id.String()}}}, "exit", "0"))
		})
		wg.Go(func() { deleted = c.as.Ask(t, trashFolder, managertest.Vars{"id": id}, nil) })
		wg.Wait()
		if len(made) == 0 && len(deleted) == 0 && !c.session(t, session).Status.Final() {
			t.Fatalf("round %d: a live session mounts a folder that is being deleted", i)
		}
		if len(made) > 0 && len(deleted) > 0 {
			t.Errorf("round %d: both refused: %s; %s", i, made, deleted)
		}
		if len(made) == 0 {
			c.end(t, session, true)
			if s := c.over(t, session); s.Status != lifecycle.Cancelled {
				t.Logf("round %d: %s", i, s.Status)
			}
		}
	}
}
