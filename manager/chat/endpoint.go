package chat

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"entgo.io/ent/dialect/sql/sqlgraph"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/domain"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
)

// administers returns an error for a viewer who is not a superadmin.
func administers(ctx context.Context) error {
	v, err := permit.Writer(ctx)
	if err == nil && !v.Superadmin() {
		err = problem.Forbidden("only a superadmin can change the endpoints of chats")
	}
	return err
}

// CreateChatEndpoint adds an endpoint, without contacting it.
func (s *Service) CreateChatEndpoint(ctx context.Context, in CreateChatEndpointInput) (*ChatEndpointPayload, error) {
	if err := administers(ctx); err != nil {
		return nil, err
	}
	if err := s.checkEndpoint(ctx, &in.Name, &in.URL, in.Key, in.Models, in.Domains); err != nil {
		return nil, err
	}
	if len(in.Models) == 0 {
		return nil, problem.Invalid("models", "is empty, 1 to %d are allowed", maxModels).WithLimit(fmt.Sprint(maxModels))
	}
	ctx = viewer.SystemContext(ctx)
	var row *ent.ChatEndpoint
	err := store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		if err := store.Lock(ctx, tx, "chat endpoints"); err != nil {
			return err
		}
		n, err := tx.ChatEndpoint.Query().Count(ctx)
		if err != nil {
			return fmt.Errorf("count endpoints: %w", err)
		}
		if n >= maxEndpoints {
			return problem.Exhausted("the cluster has %d endpoints, delete one first", n).WithField("name").WithLimit(fmt.Sprint(maxEndpoints))
		}
		c := tx.ChatEndpoint.Create().SetName(in.Name).SetAddress(strings.TrimSuffix(in.URL, "/")).SetModels(in.Models).SetAudience(audience(in.Domains))
		if in.Key != nil && *in.Key != "" {
			c.SetKeySealed(s.Keys.Seal(seal.EndpointKey, []byte(*in.Key)))
		}
		row, err = c.Save(ctx)
		return named(in.Name, err)
	})
	if err != nil {
		return nil, err
	}
	return &ChatEndpointPayload{row.Unwrap()}, nil
}

func audience(list []uuid.UUID) []uuid.UUID {
	if list == nil {
		return []uuid.UUID{}
	}
	return list
}

func named(name string, err error) error {
	switch {
	case sqlgraph.IsUniqueConstraintError(err):
		return problem.Exists("name", "an endpoint is already named %q", name)
	case err != nil:
		return fmt.Errorf("store endpoint: %w", err)
	}
	return nil
}

// UpdateChatEndpoint changes an endpoint. A new address needs the key again: otherwise the key would be sent to another server than
// the one that it is for.
func (s *Service) UpdateChatEndpoint(ctx context.Context, in UpdateChatEndpointInput) (*ChatEndpointPayload, error) {
	if err := administers(ctx); err != nil {
		return nil, err
	}
	if err := s.checkEndpoint(ctx, in.Name, in.URL, in.Key, in.Models, in.Domains); err != nil {
		return nil, err
	}
	if in.Models != nil && len(in.Models) == 0 {
		return nil, problem.Invalid("models", "is empty, 1 to %d are allowed", maxModels).WithLimit(fmt.Sprint(maxModels))
	}
	ctx = viewer.SystemContext(ctx)
	e, err := s.Client.ChatEndpoint.Get(ctx, in.ID)
	if err != nil {
		return nil, permit.Missing(err, "endpoint", "id")
	}
	up := e.Update().SetNillableName(in.Name).SetNillableEnabled(in.Enabled)
	if in.URL != nil {
		address := strings.TrimSuffix(*in.URL, "/")
		if address != e.Address && len(e.KeySealed) > 0 && in.Key == nil {
			return nil, problem.Invalid("key", "is needed again for another address")
		}
		up.SetAddress(address)
	}
	if in.Models != nil {
		up.SetModels(in.Models)
	}
	if in.Domains != nil {
		up.SetAudience(in.Domains)
	}
	switch {
	case in.Key == nil:
	case *in.Key == "":
		up.ClearKeySealed()
	default:
		up.SetKeySealed(s.Keys.Seal(seal.EndpointKey, []byte(*in.Key)))
	}
	row, err := up.Save(ctx)
	if err != nil {
		return nil, named(*cmpOr(in.Name, &e.Name), err)
	}
	return &ChatEndpointPayload{row}, nil
}

func cmpOr(a, b *string) *string {
	if a != nil {
		return a
	}
	return b
}

// DeleteChatEndpoint deletes an endpoint. Answers keep the names of its models.
func (s *Service) DeleteChatEndpoint(ctx context.Context, in DeleteChatEndpointInput) (*DeleteChatEndpointPayload, error) {
	if err := administers(ctx); err != nil {
		return nil, err
	}
	if err := s.Client.ChatEndpoint.DeleteOneID(in.ID).Exec(viewer.SystemContext(ctx)); err != nil {
		return nil, permit.Missing(err, "endpoint", "id")
	}
	return &DeleteChatEndpointPayload{in.ID}, nil
}

func (s *Service) checkEndpoint(ctx context.Context, name, address, key *string, models []string, domains []uuid.UUID) error {
	if name != nil {
		if n := utf8.RuneCountInString(*name); n == 0 || n > maxName || !utf8.ValidString(*name) || strings.TrimSpace(*name) != *name || strings.ContainsAny(*name, "\x00\n\r") {
			return problem.Invalid("name", "must have 1 to %d characters, in one line", maxName).WithLimit(fmt.Sprint(maxName))
		}
	}
	if address != nil {
		if err := checkURL(*address); err != nil {
			return err
		}
	}
	if key != nil && (len(*key) > maxKeyBytes || strings.ContainsFunc(*key, func(r rune) bool { return r <= ' ' || r > '~' })) {
		return problem.Invalid("key", "must have at most %d printable ASCII characters, without spaces", maxKeyBytes).WithLimit(fmt.Sprint(maxKeyBytes))
	}
	if len(models) > maxModels {
		return problem.Invalid("models", "has %d names, at most %d are allowed", len(models), maxModels).WithLimit(fmt.Sprint(maxModels))
	}
	for i, m := range models {
		if m == "" || len(m) > maxModelName || text("models", m, maxModelName) != nil || slices.Contains(models[:i], m) {
			return problem.Invalid("models", "%.100q is empty, longer than %d bytes, or occurs twice", m, maxModelName).WithLimit(fmt.Sprint(maxModelName))
		}
	}
	if len(domains) == 0 {
		return nil
	}
	n, err := s.Client.Domain.Query().Where(domain.IDIn(domains...)).Count(viewer.SystemContext(ctx))
	if err != nil {
		return fmt.Errorf("read domains: %w", err)
	}
	if n < distinct(domains) {
		return problem.NotFound("domain").WithField("domains")
	}
	return nil
}

// checkURL checks the form of an address. Where it leads is checked when a gateway connects.
func checkURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case len(address) > maxURL:
		return problem.Invalid("url", "has more than %d bytes", maxURL).WithLimit(fmt.Sprint(maxURL))
	case err != nil || u.Host == "" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil || u.Opaque != "":
		return problem.Invalid("url", "does not have the form https://api.example.com/v1, without a user, a query and a fragment")
	case u.Scheme != "https":
		return problem.Invalid("url", "must begin with https://, because requests carry prompts and the key")
	}
	return nil
}
