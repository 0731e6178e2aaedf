package client

import (
	"context"
	"time"

	"github.com/berthhq/berth/internal/resource"
)

// Project is a unit of work with members.
type Project struct {
	ID          string         `json:"id"`
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Active      bool           `json:"active"`
	Type        string         `json:"type"`
	CreatedAt   time.Time      `json:"createdAt"`
	Domain      Ref            `json:"domain"`
	Memberships []Membership   `json:"memberships"`
	Occupied    resource.Slots `json:"occupied"`
}

// Membership is a user's place in a project.
type Membership struct {
	ID    string  `json:"id"`
	Admin bool    `json:"admin"`
	User  UserRef `json:"user"`
}

const projectFields = `fragment projectFields on Project {
  id name description active type createdAt domain { id name }
  memberships { id admin user { id email } } occupied
}`

var listProjects = define[struct {
	Projects connection[Project] `json:"projects"`
}](`query Projects($first: Int, $after: Cursor, $where: ProjectWhereInput) {
  projects(first: $first, after: $after, where: $where, orderBy: [{ field: NAME }]) {
    edges { node { ...projectFields } } pageInfo { hasNextPage endCursor }
  }
}`, projectFields)

// Projects lists projects in sight; name "" means all.
func (c *Client) Projects(ctx context.Context, name string) ([]Project, error) {
	return collect(0, vars{"where": nameIs(name)}, func(v vars) (connection[Project], error) {
		out, err := listProjects.run(ctx, c, v)
		return out.Projects, err
	})
}

// CreateProjectInput is a new project; Domain is an id.
type CreateProjectInput struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Domain      string `json:"domain"`
}

var createProject = define[struct {
	CreateProject struct {
		Project Project `json:"project"`
	} `json:"createProject"`
}](`mutation CreateProject($input: CreateProjectInput!) {
  createProject(input: $input) { project { ...projectFields } }
}`, projectFields)

// CreateProject makes a project.
func (c *Client) CreateProject(ctx context.Context, in CreateProjectInput) (*Project, error) {
	out, err := createProject.run(ctx, c, vars{"input": in})
	return &out.CreateProject.Project, err
}

var setMembership = define[struct {
	SetMembership struct {
		Project Project `json:"project"`
	} `json:"setMembership"`
}](`mutation SetMembership($input: SetMembershipInput!) {
  setMembership(input: $input) { project { ...projectFields } }
}`, projectFields)

// SetMembership makes the user a member or, with admin, an administrator.
func (c *Client) SetMembership(ctx context.Context, project, user string, admin bool) (*Project, error) {
	out, err := setMembership.run(ctx, c, vars{"input": vars{"project": project, "user": user, "admin": admin}})
	return &out.SetMembership.Project, err
}

var removeMembership = define[struct {
	RemoveMembership struct {
		Project Project `json:"project"`
	} `json:"removeMembership"`
}](`mutation RemoveMembership($input: RemoveMembershipInput!) {
  removeMembership(input: $input) { project { ...projectFields } }
}`, projectFields)

// RemoveMembership ends a membership.
func (c *Client) RemoveMembership(ctx context.Context, project, user string) (*Project, error) {
	out, err := removeMembership.run(ctx, c, vars{"input": vars{"project": project, "user": user}})
	return &out.RemoveMembership.Project, err
}

var listDomains = define[struct {
	Domains connection[Ref] `json:"domains"`
}](`query Domains($first: Int, $after: Cursor, $where: DomainWhereInput) {
  domains(first: $first, after: $after, where: $where) {
    edges { node { id name } } pageInfo { hasNextPage endCursor }
  }
}`)

// Domains lists domains in sight; name "" means all.
func (c *Client) Domains(ctx context.Context, name string) ([]Ref, error) {
	return collect(0, vars{"where": nameIs(name)}, func(v vars) (connection[Ref], error) {
		out, err := listDomains.run(ctx, c, v)
		return out.Domains, err
	})
}

func nameIs(name string) vars {
	if name == "" {
		return vars{}
	}
	return vars{"name": name}
}
