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
	Policies    []Attachment   `json:"policies"`
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
  memberships { id admin user { id email } } policies { ...attachmentFields } occupied
}`

var listProjects = define[struct {
	Projects connection[Project] `json:"projects"`
}](`query Projects($first: Int, $after: Cursor, $where: ProjectWhereInput) {
  projects(first: $first, after: $after, where: $where, orderBy: [{ field: NAME }]) {
    edges { node { ...projectFields } } pageInfo { hasNextPage endCursor }
  }
}`, projectFields, attachmentFields)

// Projects lists projects in sight; name "" means all.
func (c *Client) Projects(ctx context.Context, name string) ([]Project, error) {
	return collect(0, vars{"where": nameIs(name)}, func(v vars) (connection[Project], error) {
		out, err := listProjects.run(ctx, c, v)
		return out.Projects, err
	})
}

// CreateProjectInput is a new project; Domain and Policy are ids.
type CreateProjectInput struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Domain      string `json:"domain"`
	Type        string `json:"type,omitempty"`
	Policy      string `json:"policy,omitempty"`
}

type projectPayload struct {
	Project Project `json:"project"`
}

var createProject = define[payload[projectPayload]](`mutation CreateProject($input: CreateProjectInput!) {
  payload: createProject(input: $input) { project { ...projectFields } }
}`, projectFields, attachmentFields)

// CreateProject makes a project.
func (c *Client) CreateProject(ctx context.Context, in CreateProjectInput) (*Project, error) {
	out, err := change(ctx, c, createProject, in)
	return &out.Project, err
}

// UpdateProjectInput changes what is set.
type UpdateProjectInput struct {
	ID          string  `json:"id"`
	Name        *string `json:"name,omitempty"`
	Description *string `json:"description,omitempty"`
	Active      *bool   `json:"active,omitempty"`
}

var updateProject = define[payload[projectPayload]](`mutation UpdateProject($input: UpdateProjectInput!) {
  payload: updateProject(input: $input) { project { ...projectFields } }
}`, projectFields, attachmentFields)

// UpdateProject changes a project.
func (c *Client) UpdateProject(ctx context.Context, in UpdateProjectInput) (*Project, error) {
	out, err := change(ctx, c, updateProject, in)
	return &out.Project, err
}

var purgeProject = define[payload[idOf]](`mutation PurgeProject($input: PurgeProjectInput!) {
  payload: purgeProject(input: $input) { id }
}`)

// PurgeProject removes a project with its history; name is its name again.
func (c *Client) PurgeProject(ctx context.Context, id, name string) error {
	_, err := change(ctx, c, purgeProject, vars{"id": id, "name": name})
	return err
}

var setMembership = define[payload[projectPayload]](`mutation SetMembership($input: SetMembershipInput!) {
  payload: setMembership(input: $input) { project { ...projectFields } }
}`, projectFields, attachmentFields)

// SetMembership makes the user a member or, with admin, an administrator.
func (c *Client) SetMembership(ctx context.Context, project, user string, admin bool) (*Project, error) {
	out, err := change(ctx, c, setMembership, vars{"project": project, "user": user, "admin": admin})
	return &out.Project, err
}

var removeMembership = define[payload[projectPayload]](`mutation RemoveMembership($input: RemoveMembershipInput!) {
  payload: removeMembership(input: $input) { project { ...projectFields } }
}`, projectFields, attachmentFields)

// RemoveMembership ends a membership.
func (c *Client) RemoveMembership(ctx context.Context, project, user string) (*Project, error) {
	out, err := change(ctx, c, removeMembership, vars{"project": project, "user": user})
	return &out.Project, err
}

func nameIs(name string) vars {
	if name == "" {
		return vars{}
	}
	return vars{"name": name}
}
