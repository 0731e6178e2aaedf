package image

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entregistry "github.com/berthhq/berth/ent/registry"
	enttask "github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/store"
	"github.com/berthhq/berth/manager/task"
)

// rescanKind is the kind of the tasks that read the repositories that a webhook named.
const rescanKind = "image.rescan"

// WebhookPath is the beginning of the paths of webhooks; the id of the registry follows.
const WebhookPath = "/webhooks/registry/"

// Results of requests to webhooks.
const (
	hookAccepted = "accepted"
	hookIgnored  = "ignored" // it names no repository that scans read
	hookRefused  = "refused"
	hookLimited  = "limited"
	hookBroken   = "broken"
)

// Limits of webhooks.
const (
	maxHook       = 1 << 20 // bytes of a request
	maxHookNames  = 50      // repositories of one request
	maxRescans    = 20      // that wait; then one scan of the whole registry follows
	hooksPerRound = 120
	wrongPerRound = 30 // requests with a wrong secret, of one address
	hookRound     = time.Minute
)

// SetRegistryWebhookInput switches the webhook of a registry on, with a new secret, or off.
type SetRegistryWebhookInput struct {
	ID      uuid.UUID
	Enabled bool
}

// SetRegistryWebhookPayload has the secret, which is shown once. Both texts are nil if it is off.
type SetRegistryWebhookPayload struct {
	Registry *ent.Registry
	Path     *string
	Secret   *string
}

// SetRegistryWebhook gives the webhook of a registry a new secret, or removes it.
func (s *Service) SetRegistryWebhook(ctx context.Context, in SetRegistryWebhookInput) (*SetRegistryWebhookPayload, error) {
	r, err := s.changeable(ctx, in.ID, access.Update)
	if err != nil {
		return nil, err
	}
	out := &SetRegistryWebhookPayload{}
	up := r.Update()
	if !in.Enabled {
		up.ClearWebhookHash()
	} else {
		secret, path := rand.Text(), WebhookPath+r.ID.String()
		hash := sha256.Sum256([]byte(secret))
		up.SetWebhookHash(hash[:])
		out.Secret, out.Path = &secret, &path
	}
	if out.Registry, err = up.Save(ctx); err != nil {
		return nil, fmt.Errorf("change the webhook of registry %s: %w", r.Name, err)
	}
	return out, nil
}

// hookPace counts requests within a minute: those with the right secret by registry, and the others by
// address, so that no one can use up the requests of a registry.
type hookPace struct {
	mu    sync.Mutex
	round time.Time
	count map[string]int
}

// add counts a request, and reports whether there are not too many.
func (p *hookPace) add(key string, n, most int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); now.Sub(p.round) > hookRound || p.count == nil {
		p.round, p.count = now, map[string]int{}
	}
	p.count[key] += n
	return p.count[key] <= most
}

// Webhook answers the events of registries: POST /webhooks/registry/ID with the secret as the value of
// Authorization, alone, after Bearer, or as the password of Basic. address is that of the client.
func (s *Service) Webhook(w http.ResponseWriter, req *http.Request, address netip.Addr) {
	status, result, message := s.hook(req, prefixOf(address))
	s.meter.webhooks.WithLabelValues(result).Inc()
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "60")
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, message+"\n")
}

// prefixOf is one address of IPv4, or the network of a customer in IPv6.
func prefixOf(a netip.Addr) string {
	bits := 64
	if a = a.Unmap(); a.Is4() {
		bits = 32
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return "unknown"
	}
	return p.String()
}

func (s *Service) hook(req *http.Request, from string) (status int, result, message string) {
	if !s.pace.add(from, 0, wrongPerRound) {
		return http.StatusTooManyRequests, hookLimited, fmt.Sprintf("more than %d requests with a wrong secret within %s", wrongPerRound, hookRound)
	}
	ctx := viewer.SystemContext(req.Context())
	r, err := s.hooked(ctx, req)
	if err != nil {
		s.log.ErrorContext(ctx, "read the registry of a webhook", "error", err)
		return http.StatusServiceUnavailable, hookBroken, "the registry cannot be read now"
	}
	if r == nil {
		s.pace.add(from, 1, wrongPerRound)
		return http.StatusUnauthorized, hookRefused, "the registry has no such webhook, or the secret is wrong"
	}
	if !s.pace.add(r.ID.String(), 1, hooksPerRound) {
		return http.StatusTooManyRequests, hookLimited, fmt.Sprintf("more than %d events within %s", hooksPerRound, hookRound)
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, req.Body, maxHook))
	if err != nil {
		if long := new(http.MaxBytesError); errors.As(err, &long) {
			return http.StatusRequestEntityTooLarge, hookBroken, fmt.Sprintf("the event has more than %d bytes", maxHook)
		}
		return http.StatusBadRequest, hookBroken, "the event cannot be read"
	}
	names, err := pushed(body)
	if err != nil {
		return http.StatusBadRequest, hookBroken, err.Error()
	}
	names = slices.DeleteFunc(names, func(n string) bool {
		return len(r.Repositories) > 0 && !matches(r.Repositories, n)
	})
	if len(names) == 0 {
		return http.StatusAccepted, hookIgnored, "the event changes no repository that scans read"
	}
	if err := s.rescan(ctx, r, names); err != nil {
		s.log.ErrorContext(ctx, "start the scan of a webhook", "registry", r.Name, "error", err)
		return http.StatusServiceUnavailable, hookBroken, "the scan cannot be started now"
	}
	return http.StatusAccepted, hookAccepted, "the scan starts"
}

// hooked returns the registry of a request with the right secret, and nil for others. A missing registry
// costs the same comparison as a wrong secret.
func (s *Service) hooked(ctx context.Context, req *http.Request) (*ent.Registry, error) {
	given := sha256.Sum256([]byte(secretOf(req)))
	want := make([]byte, len(given))
	of, err := id.Parse(id.Registry, req.PathValue("id"))
	var r *ent.Registry
	if err == nil {
		r, err = s.client.Registry.Query().Where(entregistry.ID(of)).Only(ctx)
		if err != nil && !ent.IsNotFound(err) {
			return nil, err
		}
	}
	known := r != nil && len(r.WebhookHash) == len(want)
	if known {
		want = r.WebhookHash
	}
	if subtle.ConstantTimeCompare(given[:], want) != 1 || !known {
		return nil, nil
	}
	return r, nil
}

func secretOf(req *http.Request) string {
	if _, password, ok := req.BasicAuth(); ok {
		return password
	}
	value := strings.TrimSpace(req.Header.Get("Authorization"))
	if rest, ok := strings.CutPrefix(value, "Bearer "); ok {
		return strings.TrimSpace(rest)
	}
	return value
}

// event is one of distribution, or one of Harbor.
type event struct {
	Events []struct {
		Action string `json:"action"`
		Target struct {
			Repository string `json:"repository"`
		} `json:"target"`
	} `json:"events"`
	Type string `json:"type"`
	Data struct {
		Repository struct {
			FullName string `json:"repo_full_name"`
		} `json:"repository"`
	} `json:"event_data"`
}

// changing are the actions after which tags differ.
var changing = []string{"push", "delete", "PUSH_ARTIFACT", "DELETE_ARTIFACT", "pushImage", "deleteImage", "TAG_RETENTION", "REPLICATION"}

// pushed returns the repositories that an event changes.
func pushed(body []byte) ([]string, error) {
	var e event
	if err := json.Unmarshal(body, &e); err != nil {
		return nil, errors.New("the event is not JSON of distribution or Harbor")
	}
	var names []string
	for _, one := range e.Events {
		if slices.Contains(changing, one.Action) {
			names = append(names, one.Target.Repository)
		}
	}
	if slices.Contains(changing, e.Type) {
		names = append(names, e.Data.Repository.FullName)
	}
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(n string) bool { return n == "" })
	if len(names) > maxHookNames {
		return nil, fmt.Errorf("the event names %d repositories, more than %d", len(names), maxHookNames)
	}
	for _, n := range names {
		if len(n) > maxPath || !pathRule.MatchString(n) {
			return nil, fmt.Errorf("%.80q is not the name of a repository", n)
		}
	}
	return names, nil
}

// rescan starts a task that reads repositories. One that waits already covers events until it starts.
func (s *Service) rescan(ctx context.Context, r *ent.Registry, names []string) error {
	if s.tasks == nil {
		return problem.Precondition("this manager runs no tasks")
	}
	var started *ent.Task
	full := false
	err := store.InTx(ctx, s.client, func(tx *ent.Tx) error {
		if _, err := tx.Registry.Query().Where(entregistry.ID(r.ID)).ForUpdate().Only(ctx); err != nil {
			return err
		}
		waiting, err := tx.Task.Query().Where(enttask.Kind(rescanKind), enttask.SubjectID(r.ID), enttask.StatusEQ(enttask.StatusWaiting)).All(ctx)
		if err != nil {
			return err
		}
		left := slices.Clone(names)
		for _, t := range waiting {
			var in scanning
			if json.Unmarshal(t.Input, &in) == nil && t.Attempt == 0 {
				left = slices.DeleteFunc(left, func(n string) bool { return slices.Contains(in.Repositories, n) })
			}
		}
		if len(left) == 0 {
			return nil
		}
		if full = len(waiting) >= maxRescans; full {
			return nil
		}
		started, err = s.tasks.Enqueue(ctx, tx, task.Wanted{
			Kind: rescanKind, Title: "Scan what changed in registry " + r.Name, Input: scanning{r.ID, left}, Subject: r.ID,
		})
		return err
	})
	switch {
	case err != nil:
		return err
	case full:
		_, err = s.enqueue(ctx, r.ID, func(*ent.Registry) bool { return true })
		return err
	case started != nil:
		s.tasks.Wake(ctx, started.ID)
	}
	return nil
}
