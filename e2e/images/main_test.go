package images

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

var platform *cluster.Spread

const agents = 8

func TestMain(m *testing.M) {
	os.Exit(cluster.MainSpread(m, cluster.SpreadOptions{Managers: 1, Agents: make([]int, agents)}, &platform))
}

// offer adds an image of the minimal one and layers of random bytes to the registry, and returns its size.
func offer(t testing.TB, name string, layers, size int) int64 {
	t.Helper()
	index, err := layout.ImageIndexFromPath(filepath.Join("..", "..", "build", "images", "minimal"))
	if err != nil {
		t.Skipf("%v (make images)", err)
	}
	list, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	img, err := index.Image(list.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	for i := range layers {
		layer, err := tarball.LayerFromOpener(random(fmt.Sprintf("opt/%s-%d", name, i), size))
		if err == nil {
			img, err = mutate.AppendLayers(img, layer)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	path, err := layout.Write(dir, empty.Index)
	if err == nil {
		err = path.AppendImage(img, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": name + ":1"}))
	}
	if err != nil {
		t.Fatal(err)
	}
	platform.OfferLayout(t, dir)
	m, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	total := m.Config.Size
	for _, l := range m.Layers {
		total += l.Size
	}
	cluster.Eventually(t, "the image is registered", func() bool {
		_, err := platform.Admin(t).ImageByName(t.Context(), name+":1")
		return err == nil
	})
	return total
}

// random returns a tar archive with a file that cannot be compressed, the same at each call.
func random(file string, size int) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		var seed [32]byte
		copy(seed[:], file)
		source := rand.NewChaCha8(seed)
		data := make([]byte, size)
		_, _ = source.Read(data)
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		if err := w.WriteHeader(&tar.Header{Name: file, Mode: 0o644, Size: int64(size)}); err != nil {
			return nil, err
		}
		if _, err := w.Write(data); err != nil {
			return nil, err
		}
		return io.NopCloser(&b), w.Close()
	}
}

// agentIDs returns the ids of the agents, in the order of their names.
func agentIDs(t testing.TB) (ids []string) {
	t.Helper()
	berth := platform.UserAs(t, "SUPERADMIN").Shell()
	for _, x := range platform.Agents {
		var a struct{ ID string }
		if err := json.Unmarshal([]byte(berth.Must("agent", "show", x.Name(), "-o", "json")), &a); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, a.ID)
	}
	return ids
}

// start starts a session of an image on an agent.
func start(u *cluster.User, image, agent string) *client.Session {
	return u.Run(client.CreateSessionInput{Image: image + ":1", Agents: []string{agent}, StrictAgents: true, Slots: cluster.Slots("cpu", "0.05", "mem", "32m")})
}

// end ends the sessions of a user.
func end(t testing.TB, u *cluster.User) {
	list, err := u.Sessions(context.Background(), client.SessionFilter{Live: true, Owner: u.ID})
	if err != nil {
		t.Error(err)
	}
	for _, s := range list {
		if _, err := u.TerminateSession(context.Background(), s.ID, true); err != nil {
			t.Error(err)
		}
	}
	cluster.Eventually(t, "all sessions have ended", func() bool {
		list, err := u.Sessions(context.Background(), client.SessionFilter{Live: true, Owner: u.ID})
		return err == nil && len(list) == 0
	})
}

// everywhere starts a session of an image on every agent and returns when all run.
func everywhere(t testing.TB, u *cluster.User, image string, ids []string) time.Duration {
	t.Helper()
	began := time.Now()
	var all []*client.Session
	for _, id := range ids {
		all = append(all, start(u, image, id))
	}
	for _, s := range all {
		u.Until(s.ID, "RUNNING")
	}
	return time.Since(began)
}
