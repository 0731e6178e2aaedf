package registry_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sync/errgroup"

	"github.com/berthhq/berth/internal/registry/store"
)

const grace = time.Hour

// A directory that github.com/distribution/distribution 3.1.2 wrote keeps its images.
func TestADirectoryOfDistribution(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "blobs"), os.DirFS("testdata/distribution")); err != nil {
		t.Fatal(err)
	}
	h := serveHost(t, dir)
	h.age()
	got := h.mustSweep(store.Options{Grace: grace})
	if got.Manifests != 1 || got.Blobs != 3 || got.Unclear != 0 {
		t.Errorf("the sweep reports %+v, want the untagged image of three objects", got)
	}
	for _, tag := range []string{"1", "2"} {
		if err := h.whole("team/kept:" + tag); err != nil {
			t.Errorf("tag %s: %v", tag, err)
		}
	}
}

// A deleted image frees what no other image has, a dry run says how much, and nothing that is young goes.
func TestASweepFreesADeletedImage(t *testing.T) {
	h := serveHost(t, t.TempDir())
	base := randomImage(t, 5000, 1)
	layer, err := random.Layer(9000, types.OCILayer)
	if err != nil {
		t.Fatal(err)
	}
	more, err := mutate.AppendLayers(base, layer)
	if err != nil {
		t.Fatal(err)
	}
	for name, img := range map[string]v1.Image{"team/base:1": base, "team/more:1": more} {
		if err := h.push(name, img); err != nil {
			t.Fatal(err)
		}
	}
	if err := remote.Delete(h.ref("team/more@"+digest(t, more)), h.all()); err != nil {
		t.Fatal(err)
	}
	if got := h.mustSweep(store.Options{Grace: grace}); got.FreedBytes != 0 || got.Blobs != 0 {
		t.Errorf("young content was removed: %+v", got)
	}
	h.age()
	planned := h.mustSweep(store.Options{Grace: grace, DryRun: true})
	if err := h.whole("team/base:1"); err != nil || planned.FreedBytes < 9000 || planned.Blobs != 3 {
		t.Errorf("the dry run reports %+v (%v)", planned, err)
	}
	done := h.mustSweep(store.Options{Grace: grace})
	planned.DryRun, planned.FreeBytes, done.FreeBytes = false, 0, 0
	if d := cmp.Diff(planned, done); d != "" {
		t.Errorf("the dry run and the sweep differ: %s", d)
	}
	if again := h.mustSweep(store.Options{Grace: grace}); again.FreedBytes != 0 || again.StoredBytes != done.StoredBytes {
		t.Errorf("a second sweep reports %+v after %+v", again, done)
	}
	if err := h.whole("team/base:1"); err != nil {
		t.Errorf("the other image: %v", err)
	}
}

// Pushes reuse old content that a sweep is removing at the same time: each push has a whole image in the
// end, and the sweep removes what no client pushed again.
func TestPushesDuringSweeps(t *testing.T) {
	t.Parallel()
	h := serveHost(t, t.TempDir())
	var images []v1.Image
	for i := range 10 {
		images = append(images, randomImage(t, 2000, 3))
		for _, copies := range []string{"a", "b"} {
			if err := h.push(fmt.Sprintf("team/%s%d:1", copies, i), images[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	for round := range 3 {
		for i, img := range images {
			for _, copies := range []string{"a", "b"} {
				if err := remote.Delete(h.ref(fmt.Sprintf("team/%s%d@%s", copies, i, digest(t, img))), h.all()); err != nil && round == 0 {
					t.Fatal(err)
				}
			}
		}
		h.age()
		ctx, stop := context.WithCancel(t.Context())
		var g, sweeps errgroup.Group
		sweeps.Go(func() error {
			for ctx.Err() == nil {
				if _, err := h.sweep(store.Options{Grace: grace}); err != nil {
					return err
				}
			}
			return nil
		})
		for i := 0; i < len(images); i += 2 {
			g.Go(func() error {
				if err := h.push(fmt.Sprintf("team/a%d:1", i), images[i]); err != nil {
					return err
				}
				return h.whole(fmt.Sprintf("team/a%d:1", i))
			})
		}
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
		stop()
		if err := sweeps.Wait(); err != nil {
			t.Error(err)
		}
		h.mustSweep(store.Options{Grace: grace})
		for i := range images {
			if err := h.whole(fmt.Sprintf("team/a%d:1", i)); (err == nil) != (i%2 == 0) {
				t.Errorf("image %d after round %d: %v", i, round, err)
			}
		}
		if n := h.files("data"); n != 5*5 {
			t.Errorf("the registry has %d objects after round %d, want the 25 of 5 images", n, round)
		}
	}
}

const sweepDir = "BERTH_TEST_SWEEP_DIR"

// TestSweepUntilKilled is the process that TestAKilledSweep kills.
func TestSweepUntilKilled(t *testing.T) {
	dir := os.Getenv(sweepDir)
	if dir == "" {
		t.Skip("a process of TestAKilledSweep")
	}
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("sweeping")
	_, err = s.Sweep(t.Context(), store.Options{Grace: grace})
	t.Log(err)
}

// A sweep that is killed at any moment leaves every live image whole, and the next one ends the work.
func TestAKilledSweep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := serveHost(t, dir)
	for i := range 30 {
		img := randomImage(t, 1000, 4)
		if err := h.push(fmt.Sprintf("team/x:%d", i), img); err != nil {
			t.Fatal(err)
		}
		if i%3 != 0 {
			if err := remote.Delete(h.ref("team/x@"+digest(t, img)), h.all()); err != nil {
				t.Fatal(err)
			}
		}
	}
	h.age()
	all, middle := h.files("data")+h.files("link"), 0
	for i := range 20 {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestSweepUntilKilled$", "-test.v")
		cmd.Env = append(os.Environ(), sweepDir+"="+h.dir)
		var once sync.Once
		cmd.Stdout = writer(func(p []byte) (int, error) {
			if strings.Contains(string(p), "sweeping") {
				once.Do(func() {
					time.AfterFunc(time.Duration(i)*2*time.Millisecond, func() { _ = cmd.Process.Kill() })
				})
			}
			return len(p), nil
		})
		_ = cmd.Run() // killed
		for n := 0; n < 30; n += 3 {
			if err := h.whole(fmt.Sprintf("team/x:%d", n)); err != nil {
				t.Fatalf("after kill %d: image %d: %v", i, n, err)
			}
		}
		if h.files("data") == 10*6 {
			break
		}
		if now := h.files("data") + h.files("link"); now < all {
			all, middle = now, middle+1
		}
	}
	if middle == 0 {
		t.Error("no sweep was killed in the middle of its work")
	}
	t.Logf("%d sweeps were killed in the middle", middle)
	h.mustSweep(store.Options{Grace: grace})
	if n := h.files("data"); n != 10*6 {
		t.Errorf("the registry has %d objects, want the 60 of 10 images", n)
	}
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// Untagged versions stay as long as the rule of their repository says, and those that managers need stay.
func TestRulesOfUntaggedVersions(t *testing.T) {
	two := 2
	for name, c := range map[string]struct {
		rules []store.Rule
		keep  bool
		want  int // versions with the tagged one
	}{
		"no rule":             {nil, false, 1},
		"a week":              {[]store.Rule{{Untagged: 7 * 24 * time.Hour}}, false, 5},
		"a day":               {[]store.Rule{{Untagged: 24 * time.Hour}}, false, 1},
		"two of a week":       {[]store.Rule{{Untagged: 7 * 24 * time.Hour, Versions: &two}}, false, 3},
		"longest prefix":      {[]store.Rule{{Untagged: 7 * 24 * time.Hour}, {Prefix: "team/"}}, false, 1},
		"prefix of others":    {[]store.Rule{{Untagged: 7 * 24 * time.Hour}, {Prefix: "tea/"}}, false, 5},
		"in use by a session": {nil, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := serveHost(t, t.TempDir())
			var digests []string
			for range 5 {
				img := randomImage(t, 500, 1)
				digests = append(digests, digest(t, img))
				if err := h.push("team/x:latest", img); err != nil {
					t.Fatal(err)
				}
			}
			h.age()
			o := store.Options{Grace: grace, Rules: c.rules}
			if c.keep {
				o.Keep = map[string]bool{"team/x@" + digests[0]: true}
			}
			h.mustSweep(o)
			n := 0
			for _, d := range digests {
				if h.whole("team/x@"+d) == nil {
					n++
				}
			}
			if n != c.want {
				t.Errorf("%d versions are left, want %d", n, c.want)
			}
		})
	}
}

// What is attached to an image stays and goes with it: by its subject, and by the tags of cosign.
func TestAttachmentsGoWithTheirImage(t *testing.T) {
	h := serveHost(t, t.TempDir())
	img := randomImage(t, 500, 1)
	if err := h.push("team/x:1", img); err != nil {
		t.Fatal(err)
	}
	desc, err := remote.Head(h.ref("team/x:1"))
	if err != nil {
		t.Fatal(err)
	}
	attached, ok := mutate.Subject(mutate.MediaType(empty.Image, types.OCIManifestSchema1), *desc).(v1.Image)
	if !ok {
		t.Fatal("not an image")
	}
	if err := remote.Write(h.ref("team/x@"+digest(t, attached)), attached, h.all()); err != nil {
		t.Fatal(err)
	}
	if err := h.push("team/x:"+strings.Replace(desc.Digest.String(), ":", "-", 1)+".sig", randomImage(t, 300, 1)); err != nil {
		t.Fatal(err)
	}
	h.age()
	if got := h.mustSweep(store.Options{Grace: grace}); got.Manifests != 0 || got.Blobs != 0 {
		t.Errorf("attachments of a live image were removed: %+v", got)
	}
	if err := remote.Delete(h.ref("team/x@"+desc.Digest.String()), h.all()); err != nil {
		t.Fatal(err)
	}
	h.age()
	if got := h.mustSweep(store.Options{Grace: grace}); got.Manifests != 2 || got.StoredBytes != 0 {
		t.Errorf("attachments of a deleted image are left: %+v", got)
	}
	if status, text := h.do("GET", "/v2/_catalog", "", nil); status != 200 || strings.Contains(text, "team/x") {
		t.Errorf("the empty repository is listed: %s", text)
	}
}

// Uploads that ended early go after their time, and a running one stays.
func TestOldUploadsAreRemoved(t *testing.T) {
	h := serveHost(t, t.TempDir())
	token := h.token(pushGrant("team/x"))
	for range 2 {
		if status, text := h.do("POST", "/v2/team/x/blobs/uploads/", token, nil); status != 202 {
			t.Fatal(status, text)
		}
		h.ageUploads()
	}
	if status, text := h.do("POST", "/v2/team/x/blobs/uploads/", token, nil); status != 202 {
		t.Fatal(status, text)
	}
	if got := h.mustSweep(store.Options{Grace: grace, Uploads: 24 * time.Hour}); got.Uploads != 2 {
		t.Errorf("the sweep reports %+v, want two uploads", got)
	}
	if n := h.files("data"); n != 1 {
		t.Errorf("%d uploads are left, want the young one", n)
	}
}
