package idle

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/idlechecker"
	"github.com/berthhq/berth/ent/slottype"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/appstate"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/permit"
)

// CreateIdleCheckerInput describes a new checker. The default warning is five minutes before
// the end, or half of a shorter timeout.
type CreateIdleCheckerInput struct {
	Name        string
	Description *string
	Kind        idlechecker.Kind
	Enabled     *bool
	Timeout     int // seconds
	Terms
}

// UpdateIdleCheckerInput changes the fields that are not nil.
type UpdateIdleCheckerInput struct {
	ID          uuid.UUID
	Name        *string
	Description *string
	Enabled     *bool
	Timeout     *int
	Terms
}

// Terms are the conditions of a checker besides its timeout; times are in seconds.
type Terms struct {
	Grace, NewUserGrace, Warning *int
	Match                        *idlechecker.Match
	Thresholds                   []*Threshold
	SessionTypes                 []string
	IgnoredApps                  []string // names or ports
}

// Threshold is the highest utilization, in percent, at which a kind of slot counts as unused.
type Threshold struct {
	Slot    string
	Percent float64
}

// DeleteIdleCheckerInput names the checker to delete.
type DeleteIdleCheckerInput struct{ ID uuid.UUID }

// DeleteIdleCheckerPayload is the id of the deleted checker.
type DeleteIdleCheckerPayload struct{ ID uuid.UUID }

// IdleCheckerPayload is the result of changes of a checker and its bindings.
type IdleCheckerPayload struct{ Checker *ent.IdleChecker }

const (
	minTimeout     = 60                 // seconds: four times the interval at which use is stored
	longest        = 365 * 24 * 60 * 60 // seconds
	usualWarning   = 300                // seconds
	maxDescription = 1000               // characters
)

// CreateIdleChecker creates a checker, which is not bound to anything yet.
func (s *Service) CreateIdleChecker(ctx context.Context, in CreateIdleCheckerInput) (*IdleCheckerPayload, error) {
	if err := writes(ctx); err != nil {
		return nil, err
	}
	if err := naming.Name("name", in.Name); err != nil {
		return nil, err
	}
	c, err := s.made(ctx, in)
	if err != nil {
		return nil, err
	}
	row, err := s.Client.IdleChecker.Create().SetName(in.Name).SetDescription(c.Description).SetKind(c.Kind).SetEnabled(c.Enabled).
		SetTimeout(c.Timeout).SetGrace(c.Grace).SetNewUserGrace(c.NewUserGrace).SetWarning(c.Warning).
		SetMatch(c.Match).SetThresholds(c.Thresholds).SetSessionTypes(c.SessionTypes).SetIgnoredApps(c.IgnoredApps).Save(ctx)
	if ent.IsConstraintError(err) {
		return nil, taken(in.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("create idle checker: %w", err)
	}
	return &IdleCheckerPayload{Checker: row}, nil
}

// made returns the checker that an input describes, without a name.
func (s *Service) made(ctx context.Context, in CreateIdleCheckerInput) (*ent.IdleChecker, error) {
	if err := idlechecker.KindValidator(in.Kind); err != nil {
		return nil, problem.Invalid("kind", "%q is not a kind of idle checker", in.Kind)
	}
	c := &ent.IdleChecker{
		Kind: in.Kind, Enabled: in.Enabled == nil || *in.Enabled, Timeout: in.Timeout, Warning: min(usualWarning, max(in.Timeout, 0)/2),
		Match: idlechecker.DefaultMatch, Thresholds: map[string]float64{}, SessionTypes: slices.Clone(idlechecker.DefaultSessionTypes), IgnoredApps: []string{},
	}
	if in.Description != nil {
		c.Description = *in.Description
	}
	return c, s.apply(ctx, c, in.Terms)
}

// UpdateIdleChecker changes a checker, with immediate effect for all bound sessions. Warnings
// that were already sent stay valid.
func (s *Service) UpdateIdleChecker(ctx context.Context, in UpdateIdleCheckerInput) (*IdleCheckerPayload, error) {
	c, err := s.writable(ctx, in.ID, "id")
	if err != nil {
		return nil, err
	}
	for _, one := range []struct{ from, to *string }{{in.Name, &c.Name}, {in.Description, &c.Description}} {
		if one.from != nil {
			*one.to = *one.from
		}
	}
	if in.Enabled != nil {
		c.Enabled = *in.Enabled
	}
	if in.Timeout != nil {
		c.Timeout = *in.Timeout
	}
	if err := naming.Name("name", c.Name); err != nil {
		return nil, err
	}
	if err := s.apply(ctx, c, in.Terms); err != nil {
		return nil, err
	}
	row, err := s.Client.IdleChecker.UpdateOneID(c.ID).SetName(c.Name).SetDescription(c.Description).SetEnabled(c.Enabled).
		SetTimeout(c.Timeout).SetGrace(c.Grace).SetNewUserGrace(c.NewUserGrace).SetWarning(c.Warning).
		SetMatch(c.Match).SetThresholds(c.Thresholds).SetSessionTypes(c.SessionTypes).SetIgnoredApps(c.IgnoredApps).Save(ctx)
	switch {
	case ent.IsConstraintError(err):
		return nil, taken(c.Name)
	case ent.IsNotFound(err):
		return nil, problem.NotFound("idle checker").WithField("id")
	case err != nil:
		return nil, fmt.Errorf("change idle checker %s: %w", in.ID, err)
	}
	s.changed(ctx)
	return &IdleCheckerPayload{Checker: row}, nil
}

// DeleteIdleChecker deletes a checker and its bindings.
func (s *Service) DeleteIdleChecker(ctx context.Context, in DeleteIdleCheckerInput) (*DeleteIdleCheckerPayload, error) {
	c, err := s.writable(ctx, in.ID, "id")
	if err != nil {
		return nil, err
	}
	if err := s.Client.IdleChecker.DeleteOne(c).Exec(ctx); err != nil && !ent.IsNotFound(err) {
		return nil, fmt.Errorf("delete idle checker %s: %w", in.ID, err)
	}
	s.changed(ctx)
	return &DeleteIdleCheckerPayload{ID: in.ID}, nil
}

// changed makes the leader check again.
func (s *Service) changed(ctx context.Context) { s.Bus.Publish(ctx, event.Event{Topic: topic}) }

// writes returns an error unless the viewer can change rules that end all users' sessions.
func writes(ctx context.Context) error {
	_, err := permit.Check(ctx, access.Update, access.System, access.Object{})
	return err
}

// writable returns a checker that the viewer can change.
func (s *Service) writable(ctx context.Context, id uuid.UUID, field string) (*ent.IdleChecker, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	c, err := s.Client.IdleChecker.Get(ctx, id)
	if err != nil {
		return nil, permit.Missing(err, "idle checker", field)
	}
	return c, writes(ctx)
}

// apply sets the terms of a checker and returns an error if they contradict each other.
func (s *Service) apply(ctx context.Context, c *ent.IdleChecker, t Terms) error {
	for _, one := range []struct{ from, to *int }{{t.Grace, &c.Grace}, {t.NewUserGrace, &c.NewUserGrace}, {t.Warning, &c.Warning}} {
		if one.from != nil {
			*one.to = *one.from
		}
	}
	if t.Match != nil {
		c.Match = *t.Match
	}
	if t.SessionTypes != nil {
		c.SessionTypes = t.SessionTypes
	}
	if err := ignore(c, t.IgnoredApps); err != nil {
		return err
	}
	if err := naming.Line("description", c.Description, maxDescription); err != nil {
		return err
	}
	for _, one := range []struct {
		field          string
		n, least, most int
	}{
		{"timeout", c.Timeout, minTimeout, longest}, {"grace", c.Grace, 0, longest},
		{"newUserGrace", c.NewUserGrace, 0, longest}, {"warning", c.Warning, 0, c.Timeout},
	} {
		if one.n < one.least || one.n > one.most {
			return problem.Invalid(one.field, "must be %d to %d seconds", one.least, one.most).WithLimit(fmt.Sprintf("%d..%d", one.least, one.most))
		}
	}
	if len(c.SessionTypes) == 0 {
		return problem.Invalid("sessionTypes", "must not be empty; disable the checker instead")
	}
	for i, name := range c.SessionTypes {
		if !slices.Contains(lifecycle.UserTypes, name) || slices.Contains(c.SessionTypes[:i], name) {
			return problem.Invalid(fmt.Sprintf("sessionTypes[%d]", i), "%q is not a session type or is listed twice; allowed: %s", name, strings.Join(lifecycle.UserTypes, ", "))
		}
	}
	return s.thresholds(ctx, c, t.Thresholds)
}

func (s *Service) thresholds(ctx context.Context, c *ent.IdleChecker, list []*Threshold) error {
	if list != nil {
		c.Thresholds = map[string]float64{}
	}
	known, err := s.kinds(ctx)
	if err != nil {
		return err
	}
	if c.Kind == idlechecker.KindMemory { // memory of devices
		known = slices.DeleteFunc(known, func(kind string) bool { return kind == resource.CPU || kind == resource.Mem })
	}
	for i, t := range list {
		field := fmt.Sprintf("thresholds[%d]", i)
		_, twice := c.Thresholds[t.Slot]
		switch {
		case !slices.Contains(known, t.Slot):
			return problem.Invalid(field+".slot", "%q is not a slot that a %s checker measures; known: %s", t.Slot, c.Kind, strings.Join(known, ", "))
		case twice:
			return problem.Invalid(field+".slot", "%s is named twice", t.Slot)
		case !(t.Percent >= 0 && t.Percent <= 100): // excludes NaN
			return problem.Invalid(field+".percent", "must be 0 to 100").WithLimit("0..100")
		}
		c.Thresholds[t.Slot] = t.Percent
	}
	measures := (&Rule{Kind: c.Kind}).measures()
	switch {
	case measures && len(c.Thresholds) == 0:
		return problem.Invalid("thresholds", "must have at least one entry for a %s checker", c.Kind)
	case !measures && len(c.Thresholds) > 0:
		return problem.Invalid("thresholds", "must be empty for a %s checker", c.Kind)
	}
	return nil
}

// maxIgnored limits the ignored apps of a checker.
const maxIgnored = 32

// ignore sets the apps that a checker ignores, unless list is nil.
func ignore(c *ent.IdleChecker, list []string) error {
	if list == nil {
		return nil
	}
	if len(list) > 0 && c.Kind != idlechecker.KindNetwork {
		return problem.Invalid("ignoredApps", "must be empty for a %s checker", c.Kind)
	}
	if len(list) > maxIgnored {
		return problem.Invalid("ignoredApps", "has %d apps", len(list)).WithLimit(fmt.Sprint(maxIgnored))
	}
	for i, name := range list {
		if _, err := appstate.CheckTarget(name); err != nil {
			return problem.Invalid(fmt.Sprintf("ignoredApps[%d]", i), "%v", err)
		}
	}
	c.IgnoredApps = slices.Compact(slices.Sorted(slices.Values(list)))
	return nil
}

// kinds returns the kinds of slots: cpu, mem, and the keys of accelerator plugins.
func (s *Service) kinds(ctx context.Context) ([]string, error) {
	names, err := s.Client.SlotType.Query().Select(slottype.FieldName).Strings(ctx)
	if err != nil {
		return nil, fmt.Errorf("read slot types: %w", err)
	}
	all := map[string]bool{resource.CPU: true, resource.Mem: true}
	for _, name := range names {
		all[kindOf(name)] = true
	}
	return slices.Sorted(maps.Keys(all)), nil
}

// kindOf returns the prefix of a slot's name: cuda for cuda.shares.
func kindOf(slot string) string {
	kind, _, _ := strings.Cut(slot, ".")
	return kind
}

func taken(name string) error {
	return problem.Exists("name", "an idle checker is already named %q", name)
}

// ruleOf converts a checker to a rule.
func ruleOf(c *ent.IdleChecker) Rule {
	return Rule{
		Name: c.Name, Kind: c.Kind, Timeout: seconds(c.Timeout), Grace: seconds(c.Grace), NewUserGrace: seconds(c.NewUserGrace),
		Warning: seconds(c.Warning), Any: c.Match == idlechecker.MatchAny, Thresholds: c.Thresholds, Types: c.SessionTypes, Ignored: c.IgnoredApps,
	}
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }
