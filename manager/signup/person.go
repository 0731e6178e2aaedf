package signup

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/project"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/identity"
)

// Person is a new plain user that no admin creates. An empty hash matches no password: such a
// user can log in only by an identity provider.
type Person struct {
	Email, Username, FullName string
	PasswordHash              string
	Domain                    uuid.UUID
	Project                   *uuid.UUID // the user becomes a member of it
	Status                    user.Status
}

// Join creates the user of a person, as a member of the project. A taken username gets a
// suffix, so that no one learns which usernames exist. A taken e-mail address is a constraint
// error.
func Join(ctx context.Context, tx *ent.Tx, p Person) (*ent.User, error) {
	if p.Project != nil {
		ok, err := tx.Project.Query().
			Where(project.ID(*p.Project), project.DomainID(p.Domain), project.Active(true)).Exist(ctx)
		if err != nil {
			return nil, fmt.Errorf("read project: %w", err)
		}
		if !ok {
			return nil, problem.Precondition("the project is no longer active")
		}
	}
	taken, err := tx.User.Query().Where(user.Username(p.Username)).Exist(ctx)
	if err != nil {
		return nil, fmt.Errorf("read users: %w", err)
	}
	if taken {
		const ending = 6
		p.Username = p.Username[:min(len(p.Username), naming.MaxName-ending-1)] + "-" + strings.ToLower(rand.Text()[:ending])
	}
	u, err := tx.User.Create().
		SetEmail(p.Email).SetUsername(p.Username).SetFullName(p.FullName).SetPasswordHash(p.PasswordHash).
		SetDomainID(p.Domain).SetStatus(p.Status).SetPasswordChangedAt(clock.Now()).
		Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("create user: %w", err)
	}
	if p.Project != nil {
		if err := tx.Membership.Create().SetUserID(u.ID).SetProjectID(*p.Project).Exec(ctx); err != nil {
			return nil, fmt.Errorf("add to project: %w", err)
		}
	}
	return u, nil
}

// Handle derives a username from the part of an address before the @.
func Handle(email string) string { return cmp.Or(identity.HandleOf(email), "user") }
