package preset

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/project"
	"github.com/berthhq/berth/ent/resourcegroup"
	"github.com/berthhq/berth/ent/resourcepreset"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/scheduler/plan"
	"github.com/berthhq/berth/manager/slot"
)

// State is how soon a preset could start.
type State string

// The states.
const (
	StateNow      State = "now"
	StateWhenFree State = "when_free"
	StateNever    State = "never"
)

// PresetFit is how soon a preset could start for the viewer.
type PresetFit struct {
	State  State
	Reason string // empty if it could start now
}

// Question selects a preset. Zero fields are chosen as for a new session: the viewer's only
// project, and the preset's group or the first group where it could ever start.
type Question struct{ Preset, Project, Group uuid.UUID }

// priority is the default priority of sessions.
const priority = 10

// Fits answers all questions from one snapshot of the cluster.
func (s *Service) Fits(ctx context.Context, questions []Question) (map[Question]*PresetFit, error) {
	v := viewer.From(ctx)
	var presetIDs, projectIDs []uuid.UUID
	for _, q := range questions {
		presetIDs = append(presetIDs, q.Preset)
		projectIDs = append(projectIDs, q.Project)
	}
	presets, err := s.client.ResourcePreset.Query().Where(resourcepreset.IDIn(presetIDs...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read presets: %w", err)
	}
	projects, err := s.client.Project.Query().Where(project.Active(true), project.IDIn(append(projectIDs, v.Projects...)...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read projects: %w", err)
	}
	groups, err := s.client.ResourceGroup.Query().Where(resourcegroup.Active(true)).Order(resourcegroup.ByCreatedAt()).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read resource groups: %w", err)
	}
	trial, err := s.scheduler.Trial(ctx)
	if err != nil {
		return nil, err
	}
	byID := map[uuid.UUID]*ent.ResourcePreset{}
	for _, p := range presets {
		byID[p.ID] = p
	}
	out := map[Question]*PresetFit{}
	for _, q := range questions {
		p := byID[q.Preset]
		if p == nil {
			out[q] = &PresetFit{State: StateNever, Reason: "the preset does not exist"}
			continue
		}
		r, open, why := request(v, q, p, projects, groups)
		if why != "" {
			out[q] = &PresetFit{State: StateNever, Reason: why}
			continue
		}
		switch o := trial.Run(r, open); {
		case o.Never != "":
			out[q] = &PresetFit{State: StateNever, Reason: o.Never}
		case o.Waiting != "":
			out[q] = &PresetFit{State: StateWhenFree, Reason: o.Waiting}
		default:
			out[q] = &PresetFit{State: StateNow}
		}
	}
	return out, nil
}

// request returns the session of a preset, and the groups where it can run, or the reason why
// there are none.
func request(v *viewer.Viewer, q Question, p *ent.ResourcePreset, projects []*ent.Project, groups []*ent.ResourceGroup) (r plan.Request, open []uuid.UUID, why string) {
	r = plan.Request{Owner: v.User, Priority: priority}
	for _, one := range projects {
		if v.MemberOf(one.ID) && (q.Project == one.ID || q.Project == uuid.Nil && r.Project == uuid.Nil) {
			r.Project, r.Domain = one.ID, one.DomainID
		}
	}
	if r.Project == uuid.Nil {
		return r, nil, "you are not in the project"
	}
	want := q.Group
	if p.ResourceGroupID != nil {
		if want != uuid.Nil && want != *p.ResourceGroupID {
			return r, nil, "the preset is for another resource group"
		}
		want = *p.ResourceGroupID
	}
	for _, g := range groups {
		if want == g.ID || want == uuid.Nil {
			open = append(open, g.ID)
		}
	}
	if len(open) == 0 {
		return r, nil, "you may not use the resource group"
	}
	r.Kernels = []plan.KernelRequest{{ID: uuid.New(), Slots: slot.Complete(p.Slots)}}
	return r, open, ""
}
