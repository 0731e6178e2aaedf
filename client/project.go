package client

import (
	"context"
)

// Projects lists the projects that the viewer can see; name "" means all.
func (c *Client) Projects(ctx context.Context, name string) ([]Project, error) {
	return collect(0, func(first *int, after string) (*queryProjectsProjectsProjectConnection, error) {
		out, err := queryProjects(ctx, c, first, after, nameIs(name))
		return &out.Projects, err
	})
}

// CreateProject creates a project.
func (c *Client) CreateProject(ctx context.Context, in CreateProjectInput) (*Project, error) {
	out, err := createProject(ctx, c, in)
	return &out.Payload.Project, err
}

// UpdateProject changes a project.
func (c *Client) UpdateProject(ctx context.Context, in UpdateProjectInput) (*Project, error) {
	out, err := updateProject(ctx, c, in)
	return &out.Payload.Project, err
}

// PurgeProject removes a project with its history; name must be its name.
func (c *Client) PurgeProject(ctx context.Context, id, name string) error {
	_, err := purgeProject(ctx, c, PurgeProjectInput{ID: id, Name: name})
	return err
}

// SetMembership makes the user a member or, with admin, an administrator.
func (c *Client) SetMembership(ctx context.Context, project, user string, admin bool) (*Project, error) {
	out, err := setMembership(ctx, c, SetMembershipInput{Project: project, User: user, Admin: admin})
	return &out.Payload.Project, err
}

// RemoveMembership ends a membership.
func (c *Client) RemoveMembership(ctx context.Context, project, user string) (*Project, error) {
	out, err := removeMembership(ctx, c, RemoveMembershipInput{Project: project, User: user})
	return &out.Payload.Project, err
}
