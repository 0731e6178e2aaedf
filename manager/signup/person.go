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

// Person is a plain user who was not made by an admin. An empty hash is of no
// password: such a user logs in by an identity provider only.
type Person struct {
	Email, Username, FullName string
	PasswordHash              string
	Domain                    uuid.UUID
	Project                   *uuid.UUID // in which to become a member
	Status                    user.Status
}

// Join makes the user of a person, and a member of the project. A username that
// is taken gets an ending, so that no one learns which ones there are. An e-mail
// that is taken is a constraint error.
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

// Handle makes a username of what stands before the @ of an address.
func Handle(email string) string { return cmp.Or(identity.HandleOf(email), "user") }
