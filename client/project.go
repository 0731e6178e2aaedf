package client

import "context"

// Domains lists the domains that the viewer can see; name "" means all.
func (c *Client) Domains(ctx context.Context, name string) ([]Domain, error) {
	return collect(0, func(first *int, after string) (*queryDomainsDomainsDomainConnection, error) {
		out, err := queryDomains(ctx, c, first, after, nameIs(name))
		return &out.Domains, err
	})
}

// CreateDomain creates a domain.
func (c *Client) CreateDomain(ctx context.Context, in CreateDomainInput) (*Domain, error) {
	out, err := createDomain(ctx, c, in)
	return &out.Payload.Domain, err
}

// UpdateDomain changes a domain.
func (c *Client) UpdateDomain(ctx context.Context, in UpdateDomainInput) (*Domain, error) {
	out, err := updateDomain(ctx, c, in)
	return &out.Payload.Domain, err
}

// DeleteDomain removes a domain without users; name must be its name.
func (c *Client) DeleteDomain(ctx context.Context, id, name string) error {
	_, err := deleteDomain(ctx, c, DeleteDomainInput{ID: id, Name: name})
	return err
}

// DomainByName returns the domain with a name.
func (c *Client) DomainByName(ctx context.Context, name string) (*Domain, error) {
	out, err := queryDomainByName(ctx, c, name)
	if err == nil && out.Domain == nil {
		return nil, notFound("domain", name)
	}
	return out.Domain, err
}

// Projects lists the projects that the viewer can see; name "" means all.
func (c *Client) Projects(ctx context.Context, name string) ([]Project, error) {
	return collect(0, func(first *int, after string) (*queryProjectsProjectsProjectConnection, error) {
		out, err := queryProjects(ctx, c, first, after, nameIs(name))
		return &out.Projects, err
	})
}

// ProjectMembers lists the members of a project by its id.
func (c *Client) ProjectMembers(ctx context.Context, project string) ([]Membership, error) {
	return collect(0, func(first *int, after string) (*projectMembersMembersMembershipConnection, error) {
		out, err := queryProjectMembers(ctx, c, project, first, after)
		if err != nil {
			return nil, err
		}
		if out.Node == nil || out.Node.ID == "" {
			return nil, notFound("project", project)
		}
		return &out.Node.Members, nil
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

// DeleteProject removes a project with its history; name must be its name.
func (c *Client) DeleteProject(ctx context.Context, id, name string) error {
	_, err := deleteProject(ctx, c, DeleteProjectInput{ID: id, Name: name})
	return err
}

// AddMembership makes the user a member or, with admin, an administrator.
func (c *Client) AddMembership(ctx context.Context, project, user string, admin bool) (*Project, error) {
	out, err := addMembership(ctx, c, AddMembershipInput{Project: project, User: user, Admin: admin})
	return &out.Payload.Project, err
}

// RemoveMembership ends a membership.
func (c *Client) RemoveMembership(ctx context.Context, project, user string) (*Project, error) {
	out, err := removeMembership(ctx, c, RemoveMembershipInput{Project: project, User: user})
	return &out.Payload.Project, err
}

// ProjectByName returns the project with a name, in a domain by its id; without a domain, the only
// project of that name that the viewer can see.
func (c *Client) ProjectByName(ctx context.Context, name, domain string) (*Project, error) {
	out, err := queryProjectByName(ctx, c, name, domain)
	if err == nil && out.Project == nil {
		return nil, notFound("project", name)
	}
	return out.Project, err
}
