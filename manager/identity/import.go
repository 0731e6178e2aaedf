package identity

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/project"
	"github.com/berthhq/berth/ent/resourcepolicy"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity/password"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
)

// ImportUsersInput is a CSV file of users with a header row. All users become members of
// Projects, in addition to those that a row names.
type ImportUsersInput struct {
	Domain    uuid.UUID
	CSV       string
	Projects  []uuid.UUID
	DryRun    *bool
	Passwords *ImportPasswords
}

// ImportResult is the result for one row. Password is a generated password, which is shown
// only once.
type ImportResult struct {
	Row      int // line of the file; the header is line 1
	Email    string
	Status   ImportStatus
	Error    *string
	Field    *string
	Password *string
	User     *uuid.UUID
}

// ImportUsersPayload has one result per row, in the order of the file.
type ImportUsersPayload struct {
	Results                  []ImportResult
	Created, Skipped, Failed int
}

// ImportUsers creates a user for each valid row; an invalid row does not stop the others. It
// skips e-mail addresses that the domain already has, so that a file can be imported again.
// Imported users must change their password.
func (s *Service) ImportUsers(ctx context.Context, in ImportUsersInput) (*ImportUsersPayload, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	d, err := s.mayAdd(ctx, in.Domain)
	if err != nil {
		return nil, err
	}
	rows, err := parseRows(in.CSV)
	if err != nil {
		return nil, err
	}
	im, err := s.importer(ctx, d, in, rows)
	if err != nil {
		return nil, fmt.Errorf("import users: %w", err)
	}
	out := &ImportUsersPayload{Results: make([]ImportResult, 0, len(rows))}
	for _, r := range rows {
		res := im.row(ctx, r)
		switch res.Status {
		case ImportFailed:
			out.Failed++
		case ImportSkipped:
			out.Skipped++
		default:
			out.Created++
		}
		out.Results = append(out.Results, res)
	}
	return out, nil
}

// importer is a running import.
type importer struct {
	s        *Service
	domain   *ent.Domain
	in       ImportUsersInput
	projects map[string]uuid.UUID
	policies map[string]uuid.UUID
	emails   map[string]uuid.UUID // domains of existing users
	names    map[string]bool      // existing usernames
	lines    map[string]int       // e-mail addresses and usernames of earlier rows
}

func (s *Service) importer(ctx context.Context, d *ent.Domain, in ImportUsersInput, rows []row) (*importer, error) {
	im := &importer{
		s: s, domain: d, in: in, projects: map[string]uuid.UUID{}, policies: map[string]uuid.UUID{},
		emails: map[string]uuid.UUID{}, names: map[string]bool{}, lines: map[string]int{},
	}
	projects, err := s.client.Project.Query().Where(project.DomainID(d.ID)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read projects: %w", err)
	}
	for _, p := range projects {
		im.projects[p.Name] = p.ID
	}
	for _, p := range in.Projects {
		if !slices.ContainsFunc(projects, func(known *ent.Project) bool { return known.ID == p }) {
			return nil, problem.NotFound("project of this domain").WithField("projects")
		}
	}
	policies, err := s.client.ResourcePolicy.Query().Select(resourcepolicy.FieldID, resourcepolicy.FieldName).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read policies: %w", err)
	}
	for _, p := range policies {
		im.policies[p.Name] = p.ID
	}
	return im, im.taken(ctx, rows)
}

// taken reads the existing users of all rows at once. E-mail addresses are unique across
// domains, including those that the viewer cannot see.
func (im *importer) taken(ctx context.Context, rows []row) error {
	var emails, names []string
	for _, r := range rows {
		in := im.user(r)
		if in.normalise() == nil {
			emails, names = append(emails, in.Email), append(names, in.Username)
		}
	}
	known, err := im.s.client.User.Query().Where(user.Or(user.EmailIn(emails...), user.UsernameIn(names...))).
		Select(user.FieldEmail, user.FieldUsername, user.FieldDomainID).All(viewer.SystemContext(ctx))
	if err != nil {
		return fmt.Errorf("read users: %w", err)
	}
	for _, u := range known {
		im.emails[u.Email], im.names[u.Username] = u.DomainID, true
	}
	return nil
}

// row imports one row, or returns the result of a dry run.
func (im *importer) row(ctx context.Context, r row) ImportResult {
	res := ImportResult{Row: r.line, Email: r.of["email"], Status: ImportFailed}
	fail := func(err error) ImportResult {
		p, known := problem.From(err)
		if !known {
			im.s.log.ErrorContext(ctx, "import user", "row", r.line, "error", err)
		}
		res.Error = &p.Message
		if p.Field != "" {
			res.Field = &p.Field
		}
		return res
	}
	in, generated, err := im.checked(ctx, r)
	if err != nil {
		return fail(err)
	}
	res.Email = in.Email
	if where, there := im.emails[in.Email]; there && where == im.domain.ID {
		why := "the domain has this user already"
		res.Status, res.Error = ImportSkipped, &why
		return res
	} else if there {
		return fail(problem.Exists("email", "is already taken"))
	}
	if im.names[in.Username] {
		return fail(problem.Exists("username", "is already taken"))
	}
	if isTrue(im.in.DryRun) {
		res.Status = ImportWouldCreate
		return res
	}
	u, err := im.store(ctx, in, generated)
	if err != nil {
		return fail(err)
	}
	res.Status, res.User = ImportCreated, &u.ID
	if generated {
		res.Password = &in.Password
	}
	return res
}

func (im *importer) store(ctx context.Context, in CreateUserInput, generated bool) (u *ent.User, err error) {
	hasher := im.s.passwords
	if generated {
		hasher = im.s.quick
	}
	hash, err := hasher.Hash(ctx, in.Password)
	if err != nil {
		return nil, err
	}
	err = store.InTx(ctx, im.s.client, func(tx *ent.Tx) (err error) {
		u, err = addUser(ctx, tx, in, hash, true)
		return err
	})
	return u, err
}

// checked converts a row to the input for a new user, unless the user exists.
func (im *importer) checked(ctx context.Context, r row) (in CreateUserInput, generated bool, err error) {
	if r.err != nil {
		return in, false, r.err
	}
	in = im.user(r)
	if in.Password == "" && im.in.Passwords != nil && *im.in.Passwords == PasswordsGenerated {
		in.Password, generated = password.Generate(max(generatedPassword, im.domain.PasswordMinLength)), true
	}
	if err := in.normalise(); err != nil {
		return in, false, err
	}
	if err := password.RulesOf(im.domain).Check("password", in.Password, in.Email, in.Username); err != nil {
		return in, false, err
	}
	if err := mayGrant(viewer.From(ctx), im.domain.ID, *in.Role); err != nil {
		return in, false, err
	}
	for _, key := range []struct{ field, value string }{{"email", in.Email}, {"username", in.Username}} {
		mark := key.field + ":" + key.value
		if line, twice := im.lines[mark]; twice {
			return in, false, problem.Exists(key.field, "is already in row %d", line)
		}
		im.lines[mark] = r.line
	}
	for _, name := range r.projects() {
		p, ok := im.projects[name]
		if !ok {
			return in, false, problem.NotFound(fmt.Sprintf("project %.80q", name)).WithField("projects")
		}
		if !slices.Contains(in.Projects, p) {
			in.Projects = append(in.Projects, p)
		}
	}
	if name := r.of["policy"]; name != "" {
		p, ok := im.policies[name]
		if !ok {
			return in, false, problem.NotFound(fmt.Sprintf("policy %.80q", name)).WithField("policy")
		}
		in.Policy = &p
	}
	return in, generated, nil
}

func (im *importer) user(r row) CreateUserInput {
	in := CreateUserInput{
		Email: r.of["email"], Username: r.of["username"], Password: r.of["password"], Domain: im.domain.ID,
		Projects: slices.Clone(im.in.Projects),
	}
	if name := r.of["full_name"]; name != "" {
		in.FullName = &name
	}
	if role := user.Role(r.of["role"]); role != "" {
		in.Role = &role
	}
	return in
}
