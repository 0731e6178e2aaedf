package image_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entimage "github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/ent/scanresult"
	enttask "github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/image"
	"github.com/berthhq/berth/manager/task"
)

// bed is a manager that runs scans.
type bed struct {
	*identitytest.World
	*image.Service
	tasks *task.Service
	root  context.Context
}

func newBed(t testing.TB) *bed {
	t.Helper()
	b := &bed{World: identitytest.New(t)}
	log := slog.New(slog.DiscardHandler)
	b.tasks = task.New(task.Config{
		Client: b.Client, Bus: event.New(nil, log), Logger: log, Backoff: func(int) time.Duration { return 0 }, Pause: time.Millisecond,
	})
	b.Service = image.New(image.Config{Client: b.Client, Keys: ring(t), Tasks: b.tasks, TagTimeout: 2 * time.Second})
	b.root = b.As(t, b.Superadmin)
	b.Elect(t, 1)
	return b
}

// lead runs the loop of the leader until the returned function is called.
func (b *bed) lead(t testing.TB) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); b.tasks.Lead(ctx, 1) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

// scan scans a registry to the end.
func (b *bed) scan(t *testing.T, r *ent.Registry) *ent.Task {
	t.Helper()
	id := b.start(t, r)
	stop := b.lead(t)
	defer stop()
	return b.ends(t, id)
}

func (b *bed) start(t testing.TB, r *ent.Registry) uuid.UUID {
	t.Helper()
	out, err := b.ScanRegistry(b.root, image.ScanRegistryInput{ID: r.ID})
	if err != nil {
		t.Fatal(err)
	}
	return out.Task.ID
}

func (b *bed) ends(t *testing.T, id uuid.UUID) *ent.Task {
	t.Helper()
	wait.For(t, func() error {
		if got := b.Client.Task.GetX(b.root, id); got.EndedAt == nil {
			return problem.Unavailable("task is %s: %s", got.Status, got.Message)
		}
		return nil
	})
	return b.Client.Task.GetX(b.root, id)
}

// results are the outcomes by name.
func (b *bed) results(r *ent.Registry) map[string]string {
	out := map[string]string{}
	for _, x := range b.Client.ScanResult.Query().Where(scanresult.RegistryID(r.ID)).AllX(b.root) {
		out[x.Name] = string(x.Outcome)
	}
	return out
}

func same(t *testing.T, got, want map[string]string) {
	t.Helper()
	for n, w := range want {
		if got[n] != w {
			t.Errorf("%s is %q, want %q", n, got[n], w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("results %v, want %v", got, want)
	}
}

func TestScan(t *testing.T) {
	b := newBed(t)
	st := newStore(t)
	labels := map[string]string{"ai.backend.resource.min.cpu": "99", "privileged": "true"}
	digests := st.put(t, "python:3.11", labels, "amd64")
	st.put(t, "lab/torch:2", nil, "arm64", "amd64")
	st.put(t, "kept:1", nil, "amd64")
	r := add(t, b.root, b.Service, "local", st.host)

	_, err := b.ScanRegistry(b.As(t, b.A.Admin), image.ScanRegistryInput{ID: r.ID})
	want(t, err, problem.CodePermissionDenied, "")
	_, err = b.ScanRegistry(b.root, image.ScanRegistryInput{ID: uuid.New()})
	want(t, err, problem.CodeNotFound, "id")

	if got := b.scan(t, r); got.Status != enttask.StatusDone || got.Done != 3 || got.Total != 3 || got.Message != "new: 3" {
		t.Errorf("the first scan: %v", got)
	}
	same(t, b.results(r), map[string]string{"python:3.11": "new", "lab/torch:2": "new", "kept:1": "new"})
	if n := b.Client.Image.Query().CountX(b.root); n != 4 {
		t.Errorf("%d images, want one for each architecture", n)
	}
	i := b.Client.Image.Query().Where(entimage.Name("python:3.11")).OnlyX(b.root)
	if i.Reference != st.host+"/python:3.11" || i.Digest != digests["amd64"] || i.SizeBytes < 2048 || i.Labels["privileged"] != "true" {
		t.Errorf("recorded %v", i)
	}
	if b.Client.Registry.GetX(b.root, r.ID).LastScannedAt == nil {
		t.Error("the scan was not noted")
	}

	// The second scan finds a new digest of a tag, an architecture and a row that are gone.
	digests = st.put(t, "python:3.11", nil, "amd64")
	st.put(t, "lab/torch:2", nil, "amd64")
	lost := b.Client.Image.Create().SetReference(st.host + "/old:1").SetName("old:1").SetArchitecture("amd64").
		SetDigest("sha256:0").SetRegistryID(r.ID).SaveX(b.root)
	elsewhere := add(t, b.root, b.Service, "elsewhere", "other.example")
	kept := b.Client.Image.Create().SetReference("other.example/old:1").SetName("old:1").SetArchitecture("amd64").
		SetDigest("sha256:0").SetRegistryID(elsewhere.ID).SaveX(b.root)
	b.scan(t, r)
	same(t, b.results(r), map[string]string{"python:3.11": "moved", "lab/torch:2": "moved", "kept:1": "unchanged"})
	if again := b.Client.Image.GetX(b.root, i.ID); again.Digest != digests["amd64"] || again.TagDigest != digests["amd64"] {
		t.Errorf("digests are %s and %s, want %s", again.Digest, again.TagDigest, digests["amd64"])
	}
	if n := b.Client.Image.Query().Where(entimage.Architecture("arm64"), entimage.StatusEQ(entimage.StatusGone)).CountX(b.root); n != 1 {
		t.Error("an architecture that the tag no longer has is not gone")
	}
	if got := b.Client.Image.GetX(b.root, lost.ID).Status; got != entimage.StatusGone {
		t.Errorf("an image that is not there is %s", got)
	}
	if got := b.Client.Image.GetX(b.root, kept.ID).Status; got != entimage.StatusAlive {
		t.Errorf("an image of another registry is %s", got)
	}
}

// front is a registry before another one, which counts requests and can misbehave.
type front struct {
	*httptest.Server
	host string
	log  chan string
	act  func(rw http.ResponseWriter, r *http.Request) (done bool)
}

func newFront(t *testing.T, inner http.Handler, act func(rw http.ResponseWriter, r *http.Request) bool) *front {
	f := &front{log: make(chan string, 10_000), act: act}
	f.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		f.log <- r.Method + " " + r.URL.Path
		if f.act != nil && f.act(rw, r) {
			return
		}
		inner.ServeHTTP(rw, r)
	}))
	t.Cleanup(f.Close)
	f.host = strings.TrimPrefix(f.URL, "http://")
	return f
}

// took returns the requests since the last call.
func (f *front) took() (all []string) {
	for len(f.log) > 0 {
		all = append(all, <-f.log)
	}
	return all
}

// TestUnchangedTagsCostOneRequest scans twice: the second scan asks for each tag with HEAD only,
// and does not fetch the same broken content again.
func TestUnchangedTagsCostOneRequest(t *testing.T) {
	b := newBed(t)
	st := newStore(t)
	for _, n := range []string{"a:1", "a:2", "b:1"} {
		st.put(t, n, nil, "amd64")
	}
	st.put(t, "windows:1", nil, "amd64")
	f := newFront(t, st.inner, func(rw http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/v2/windows/manifests/") && r.Method == http.MethodGet {
			rw.Header().Set("Docker-Content-Digest", "")
		}
		return false
	})
	r := add(t, b.root, b.Service, "local", f.host)
	b.scan(t, r)
	first := f.took()
	b.scan(t, r)
	second := f.took()
	heads := 0
	for _, x := range second {
		switch {
		case strings.HasPrefix(x, "HEAD ") && strings.Contains(x, "/manifests/"):
			heads++
		case strings.Contains(x, "/manifests/"), strings.Contains(x, "/blobs/"):
			t.Errorf("%s again", x)
		}
	}
	if heads != 4 || len(second) >= len(first) {
		t.Errorf("%d HEAD, %d requests after %d", heads, len(second), len(first))
	}
	// An image that was removed from the list is registered again.
	b.Client.Image.Delete().Where(entimage.Name("a:1")).ExecX(b.root)
	b.scan(t, r)
	if got := b.results(r)["a:1"]; got != "new" {
		t.Errorf("a removed image is %s", got)
	}
}

func TestOneBadTagDoesNotSpoilTheScan(t *testing.T) {
	b := newBed(t)
	st := newStore(t)
	for _, n := range []string{"good:1", "bad:1", "slow:1"} {
		st.put(t, n, nil, "amd64")
	}
	broken := false
	f := newFront(t, st.inner, func(rw http.ResponseWriter, r *http.Request) bool {
		switch {
		case broken && strings.Contains(r.URL.Path, "/bad/manifests/"):
			http.Error(rw, "disk full at /var/lib/registry", http.StatusInsufficientStorage)
		case broken && strings.Contains(r.URL.Path, "/slow/manifests/"):
			<-r.Context().Done()
		default:
			return false
		}
		return true
	})
	r := add(t, b.root, b.Service, "local", f.host)
	b.scan(t, r)
	same(t, b.results(r), map[string]string{"good:1": "new", "bad:1": "new", "slow:1": "new"})
	broken = true
	if got := b.scan(t, r); got.Status != enttask.StatusDone || got.Message != "unchanged: 1, failed: 2" {
		t.Errorf("with faults: %v", got)
	}
	same(t, b.results(r), map[string]string{"good:1": "unchanged", "bad:1": "failed", "slow:1": "failed"})
	for _, x := range b.Client.ScanResult.Query().Where(scanresult.OutcomeEQ(scanresult.OutcomeFailed)).AllX(b.root) {
		if x.Message == "" || strings.Contains(x.Message, "/var") {
			t.Errorf("%s: %s", x.Name, x.Message)
		}
	}
	if n := b.Client.Image.Query().Where(entimage.StatusEQ(entimage.StatusAlive)).CountX(b.root); n != 3 {
		t.Errorf("%d images are alive: one that could not be read this time is not gone", n)
	}
}

// TestBusyRegistry answers every third request with 429: the scan waits, and loses no tag.
func TestBusyRegistry(t *testing.T) {
	b := newBed(t)
	st := newStore(t)
	for _, n := range []string{"a:1", "a:2", "b:1", "c:1"} {
		st.put(t, n, nil, "amd64")
	}
	turn := make(chan int, 1)
	turn <- 0
	f := newFront(t, st.inner, func(rw http.ResponseWriter, _ *http.Request) bool {
		n := <-turn
		turn <- n + 1
		if n%3 != 2 {
			return false
		}
		rw.Header().Set("Retry-After", "0")
		rw.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	r := add(t, b.root, b.Service, "local", f.host)
	if got := b.scan(t, r); got.Status != enttask.StatusDone || got.Message != "new: 4" || got.Attempt != 1 {
		t.Errorf("the scan: %v", got)
	}
}

// TestScanGoesOnAfterACrash stops the leader in the middle of a scan: the next one reads only the
// tags that are left. A second request in the meantime gets the same task.
func TestScanGoesOnAfterACrash(t *testing.T) {
	b := newBed(t)
	st := newStore(t)
	for _, n := range []string{"a:1", "b:1", "c:1", "d:1"} {
		st.put(t, n, nil, "amd64")
	}
	hold := make(chan struct{})
	f := newFront(t, st.inner, func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/d/manifests/") {
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		}
		return false
	})
	r := add(t, b.root, b.Service, "local", f.host)
	out, err := b.ScanRegistry(b.root, image.ScanRegistryInput{ID: r.ID})
	if err != nil {
		t.Fatal(err)
	}
	stop := b.lead(t)
	wait.For(t, func() error {
		if got := b.Client.Task.GetX(b.root, out.Task.ID); got.Done != 3 || got.Total != 4 {
			return problem.Unavailable("%d of %d", got.Done, got.Total)
		}
		return nil
	})
	again, err := b.ScanRegistry(b.root, image.ScanRegistryInput{ID: r.ID})
	if err != nil || again.Task.ID != out.Task.ID {
		t.Errorf("another task while one runs: %v, %v", again, err)
	}
	stop()
	close(hold)
	f.took()
	b.lead(t)
	if got := b.ends(t, out.Task.ID); got.Status != enttask.StatusDone || got.Done != 4 || got.Message != "new: 4" {
		t.Errorf("after the crash: %v", got)
	}
	for _, x := range f.took() {
		if strings.Contains(x, "/manifests/") && !strings.Contains(x, "/d/") {
			t.Errorf("%s again", x)
		}
	}
}

func TestScanIsCancelled(t *testing.T) {
	b := newBed(t)
	st := newStore(t)
	st.put(t, "a:1", nil, "amd64")
	f := newFront(t, st.inner, func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/manifests/") {
			<-r.Context().Done()
		}
		return false
	})
	r := add(t, b.root, b.Service, "local", f.host)
	out, err := b.ScanRegistry(b.root, image.ScanRegistryInput{ID: r.ID})
	if err != nil {
		t.Fatal(err)
	}
	b.lead(t)
	wait.For(t, func() error {
		if !b.tasks.Runs(out.Task.ID) {
			return problem.Unavailable("not yet")
		}
		return nil
	})
	if _, err := b.tasks.CancelTask(b.root, task.CancelTaskInput{ID: out.Task.ID}); err != nil {
		t.Fatal(err)
	}
	if got := b.ends(t, out.Task.ID); got.Status != enttask.StatusCancelled {
		t.Errorf("cancelled: %v", got)
	}
}

// TestScanOfConfiguredRepositories reads only what the settings name, and asks for the catalogue
// only for patterns.
func TestScanOfConfiguredRepositories(t *testing.T) {
	b := newBed(t)
	st := newStore(t)
	for _, n := range []string{"lab/a:1", "lab/deep/b:1", "team/c:1", "other:1"} {
		st.put(t, n, nil, "amd64")
	}
	f := newFront(t, st.inner, nil)
	r := add(t, b.root, b.Service, "local", f.host)
	outside := b.Client.Image.Create().SetReference(f.host + "/single:1").SetName("single:1").SetArchitecture("amd64").
		SetDigest("sha256:0").SetRegistryID(r.ID).SaveX(b.root)
	set := func(list ...string) {
		t.Helper()
		in := image.UpdateRegistryInput{ID: r.ID}
		in.Repositories = list
		if _, err := b.UpdateRegistry(b.root, in); err != nil {
			t.Fatal(err)
		}
	}
	set("team/c", "lab/gone")
	b.scan(t, r)
	same(t, b.results(r), map[string]string{"team/c:1": "new", "lab/gone": "failed"})
	if all := f.took(); slices.ContainsFunc(all, func(x string) bool { return strings.Contains(x, "_catalog") }) {
		t.Errorf("asked for the catalogue: %v", all)
	}
	set("lab/*")
	b.scan(t, r)
	same(t, b.results(r), map[string]string{"lab/a:1": "new", "lab/deep/b:1": "new"})
	if got := b.Client.Image.GetX(b.root, outside.ID).Status; got != entimage.StatusAlive {
		t.Errorf("an image of a repository that was not read is %s", got)
	}
	for _, bad := range []string{"Lab/a", "lab//a", "../x", "", "lab/**/[a]", "https://x"} {
		in := image.UpdateRegistryInput{ID: r.ID}
		in.Repositories = []string{bad}
		_, err := b.UpdateRegistry(b.root, in)
		want(t, err, problem.CodeInvalidArgument, "repositories")
	}
}

// TestScheduledScan starts a scan that is due, once.
func TestScheduledScan(t *testing.T) {
	b := newBed(t)
	r := add(t, b.root, b.Service, "local", "127.0.0.1:1")
	every := 300
	in := image.UpdateRegistryInput{ID: r.ID}
	in.ScanEvery = &every
	if _, err := b.UpdateRegistry(b.root, in); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go b.Lead(ctx)
	go b.Lead(ctx) // a manager that does not know yet that it was replaced
	wait.For(t, func() error {
		if n := b.Client.Task.Query().CountX(b.root); n != 1 {
			return problem.Unavailable("%d tasks", n)
		}
		return nil
	})
	if due := b.Client.Registry.GetX(b.root, r.ID).ScanDueAt; due == nil || time.Until(*due) < 4*time.Minute {
		t.Errorf("the next scan is due at %v", due)
	}
	for _, bad := range []int{-1, 299, 31 * 86400} {
		in.ScanEvery = &bad
		_, err := b.UpdateRegistry(b.root, in)
		want(t, err, problem.CodeInvalidArgument, "scanEvery")
	}
}

func TestRegistriesThatDoNotAnswer(t *testing.T) {
	b := newBed(t)
	for name, c := range map[string]struct {
		status   int
		attempts int
	}{
		"no-catalogue": {http.StatusMethodNotAllowed, 1},
		"locked":       {http.StatusForbidden, 1},
		"login":        {http.StatusUnauthorized, 1},
		"broken":       {http.StatusInsufficientStorage, 5},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFront(t, http.NotFoundHandler(), func(rw http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/v2/" {
					rw.WriteHeader(c.status)
				}
				return true
			})
			r := add(t, b.root, b.Service, name, f.host)
			if got := b.scan(t, r); got.Status != enttask.StatusFailed || got.Attempt != c.attempts || got.Message == "" {
				t.Errorf("the scan: %v, want %d attempts", got, c.attempts)
			}
		})
	}
}

// TestRegistryCheck says what works, up to the first thing that does not.
func TestRegistryCheck(t *testing.T) {
	b := newBed(t)
	st := newStore(t)
	st.put(t, "a:1", nil, "amd64")
	secured := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secured.Close)
	locked := newFront(t, http.NotFoundHandler(), func(rw http.ResponseWriter, _ *http.Request) bool {
		rw.Header().Set("WWW-Authenticate", `Bearer realm="https://evil.example.net/token"`)
		rw.WriteHeader(http.StatusUnauthorized)
		return true
	})
	plain := true
	for name, c := range map[string]struct {
		in   image.CreateRegistryInput
		want string
	}{
		"all":     {image.CreateRegistryInput{Host: st.host, PlainHTTP: &plain}, "REACHABLE+ TLS+ LOGIN+ LISTING+"},
		"nobody":  {image.CreateRegistryInput{Host: "127.0.0.1:1", PlainHTTP: &plain}, "REACHABLE-"},
		"signed":  {image.CreateRegistryInput{Host: strings.TrimPrefix(secured.URL, "https://")}, "REACHABLE+ TLS-"},
		"no-tls":  {image.CreateRegistryInput{Host: strings.Replace(st.host, "127.0.0.1", "localhost", 1)}, "REACHABLE+ TLS-"},
		"hostile": {image.CreateRegistryInput{Host: locked.host, PlainHTTP: &plain}, "REACHABLE+ TLS+ LOGIN-"},
	} {
		t.Run(name, func(t *testing.T) {
			c.in.Name = name
			made, err := b.CreateRegistry(b.root, c.in)
			if err != nil {
				t.Fatal(err)
			}
			_, err = b.TestRegistry(b.As(t, b.A.Admin), image.TestRegistryInput{ID: made.Registry.ID})
			want(t, err, problem.CodePermissionDenied, "")
			out, err := b.TestRegistry(b.root, image.TestRegistryInput{ID: made.Registry.ID})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, x := range out.Checks {
				got = append(got, x.Step+map[bool]string{true: "+", false: "-"}[x.Works])
				if x.Text == "" {
					t.Errorf("%s says nothing", x.Step)
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %v, want %s: %s", got, c.want, out.Checks[len(out.Checks)-1].Text)
			}
		})
	}
}
