package image_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	ggcr "github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/registry"
	"github.com/berthhq/berth/internal/registry/pushtoken"
	"github.com/berthhq/berth/internal/registry/registrytest"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/image"
	"github.com/berthhq/berth/manager/task"
)

// ownBed is a manager with a registry for images of sessions.
type ownBed struct {
	*bed
	host    string
	push    ggcr.Option // for everything below team and users
	reg     *ent.Registry
	metrics *prometheus.Registry
}

func newOwnBed(t *testing.T) *ownBed {
	t.Helper()
	key := pushtoken.Key("a key of push tokens that is long enough")
	_, host := registrytest.Serve(t, t.TempDir(), func(r *registry.Registry) { r.AllowPush(key) })
	b := &bed{World: identitytest.New(t)}
	log := slog.New(slog.DiscardHandler)
	b.tasks = task.New(task.Config{
		Client: b.Client, Bus: event.New(nil, log), Logger: log, Backoff: func(int) time.Duration { return 0 }, Pause: time.Millisecond,
	})
	o := &ownBed{bed: b, host: host, metrics: prometheus.NewRegistry()}
	b.Service = image.New(image.Config{
		Client: b.Client, Keys: ring(t), Tasks: b.tasks, Registry: o.metrics,
		Own: image.Own{Host: host, Key: key}, SweepGrace: time.Nanosecond,
	})
	b.root = b.As(t, b.Superadmin)
	b.Elect(t, 1)
	token, err := key.Sign(pushtoken.Grant{Namespace: "team", Expires: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	o.push = ggcr.WithAuth(&authn.Basic{Username: pushtoken.User, Password: token})
	o.reg = add(t, b.root, b.Service, "own", host)
	return o
}

func (o *ownBed) repository(t *testing.T, path string) name.Repository {
	t.Helper()
	r, err := name.NewRepository(o.host+"/"+path, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// put pushes an image and returns its descriptor.
func (o *ownBed) put(t *testing.T, path, tag string) v1.Descriptor {
	t.Helper()
	ref := o.repository(t, path).Tag(tag)
	if err := ggcr.Write(ref, build(t, "amd64", nil), o.push); err != nil {
		t.Fatal(err)
	}
	d, err := ggcr.Head(ref)
	if err != nil {
		t.Fatal(err)
	}
	return *d
}

// run runs a task to its end.
func (o *ownBed) run(t *testing.T, task *ent.Task) *ent.Task {
	t.Helper()
	stop := o.lead(t)
	defer stop()
	return o.ends(t, task.ID)
}
