package serving

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/deployment"
	"github.com/berthhq/berth/gateway/inference"
	"github.com/berthhq/berth/internal/viewer"
)

// Ask is a request to a deployment that the platform sends for a user, without a key. It has the rights of the user.
type Ask struct {
	User       uuid.UUID
	Deployment uuid.UUID
	// Revision is the only one that gets the request; nil: the one that the router chooses.
	Revision *int
	// Body is that of a request to /v1/chat/completions.
	Body []byte
}

// ask is an Ask on its way through the router.
type ask struct {
	Ask
	record inference.Record
}

type askKey struct{}

func askOf(ctx context.Context) *ask {
	a, _ := ctx.Value(askKey{}).(*ask)
	return a
}

// Ask sends a request through the router, and writes the answer to w as for any client. It returns when the answer has ended, with
// what is known of the request.
func (s *Service) Ask(ctx context.Context, in Ask, w http.ResponseWriter) (inference.Record, error) {
	out, ok := s.places.Try(in.User, maxOpen)
	if !ok {
		return inference.Record{}, &inference.Limit{Message: fmt.Sprintf("%d of your requests are open at this gateway", maxOpen), After: time.Second}
	}
	defer out()
	part, err := s.bodies.enter(in.User.String(), false, int64(len(in.Body)))
	if err != nil {
		return inference.Record{}, err
	}
	defer part.shrink(0)
	a := &ask{Ask: in}
	r, err := http.NewRequestWithContext(context.WithValue(ctx, askKey{}, a), http.MethodPost, "/v1/chat/completions", bytes.NewReader(in.Body))
	if err != nil {
		return inference.Record{}, fmt.Errorf("ask a model: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	rec := &recorder{ResponseWriter: w}
	defer func() { s.meter.answered("POST /v1/chat/completions", cmp.Or(rec.status, statusLeft)) }()
	s.router.ServeHTTP(rec, r)
	return a.record, nil
}

// openFor returns the access of a user to a deployment.
func (s *Service) openFor(ctx context.Context, a *ask) (*inference.Access, error) {
	name := ""
	err := s.read(viewer.SystemContext(ctx), func(ctx context.Context) error {
		rights, err := s.Users.Rights(ctx, []uuid.UUID{a.User})
		if err != nil {
			return s.away(ctx, "read the rights of a user", err)
		}
		v := rights[a.User]
		if v == nil {
			return fmt.Errorf("the user is not active: %w", errdefs.ErrUnauthenticated)
		}
		d, err := s.Client.Deployment.Query().Where(deployment.ID(a.Deployment), served(), deployment.DomainID(v.Domain)).Only(viewer.With(ctx, v))
		if ent.IsNotFound(err) {
			return fmt.Errorf("the deployment does not exist, or you cannot use it: %w", errdefs.ErrNotFound)
		}
		if err != nil {
			return s.away(ctx, "look up a model", err)
		}
		name = d.Name
		return nil
	})
	if err != nil {
		return nil, err
	}
	d, err := s.fleet.use(ctx, a.Deployment, name)
	if err != nil {
		return nil, err
	}
	group := 0
	if a.Revision != nil {
		if group = *a.Revision; !d.has(group) {
			return nil, fmt.Errorf("revision %d of %s has no replica and gets no requests: %w", group, name, errdefs.ErrNotFound)
		}
	}
	return &inference.Access{Model: d.model, Tenant: a.User.String(), Group: group, Keep: s.prompts.of(d, &a.User), Count: func(r inference.Record) {
		d.count(r, time.Now())
		s.meter.count(r)
		a.record = r
	}}, nil
}

// has reports whether a revision has a replica, or gets requests as soon as it has one.
func (d *model) has(revision int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.replicas {
		if r.revision == revision {
			return true
		}
	}
	return d.weights[revision] > 0
}
