// Package identity writes domains, projects, users and memberships, and creates the first of each.
// Reads go through ent.
package identity

import (
	"context"
	"log/slog"
	"net/netip"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/manager/identity/password"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/task"
)

// Logins ends the logins and connections of users whose permissions have changed.
type Logins interface {
	// EndLogins ends the logins of a user in a transaction.
	EndLogins(ctx context.Context, tx *ent.Tx, user uuid.UUID) error
	// EndCredentials revokes the access tokens, keypairs and SSH keys of a user in a
	// transaction, and returns the ids of those that were valid.
	EndCredentials(ctx context.Context, tx *ent.Tx, user uuid.UUID) ([]uuid.UUID, error)
	// EndLoginsOutside ends the logins from addresses that are not in the list.
	EndLoginsOutside(ctx context.Context, tx *ent.Tx, user uuid.UUID, allowed []string) error
	// Recheck closes the connections of a user that are no longer allowed. Like Disconnect, it
	// is called after the commit.
	Recheck(ctx context.Context, user uuid.UUID)
	// Disconnect closes the connections of a credential or a user.
	Disconnect(ctx context.Context, credentialOrUser uuid.UUID)
}

// Address returns the client's address of a request; the zero address if unknown.
type Address func(ctx context.Context) netip.Addr

// Config has the dependencies of a Service.
type Config struct {
	Client    *ent.Client
	Passwords *password.Hasher
	Logins    Logins
	Address   Address // nil: addresses are unknown
	Tasks     *task.Service
	Sessions  Sessions
	Folders   Folders
	Purged    Purged // may be nil
	Logger    *slog.Logger
}

// Service writes domains, projects, users and memberships.
type Service struct {
	client    *ent.Client
	passwords *password.Hasher
	logins    Logins
	address   Address
	tasks     *task.Service
	sessions  Sessions
	folders   Folders
	purged    Purged
	log       *slog.Logger
	// quick hashes generated passwords. They have more than 110 bits and need no slow hash,
	// and the user replaces them at the first login.
	quick *password.Hasher
}

// New returns a Service.
func New(cfg Config) *Service {
	if cfg.Address == nil {
		cfg.Address = func(context.Context) netip.Addr { return netip.Addr{} }
	}
	if cfg.Purged == nil {
		cfg.Purged = func(context.Context, uuid.UUID, *ent.User, string) {}
	}
	s := &Service{
		client: cfg.Client, passwords: cfg.Passwords, logins: cfg.Logins, address: cfg.Address, log: cfg.Logger,
		tasks: cfg.Tasks, sessions: cfg.Sessions, folders: cfg.Folders, purged: cfg.Purged,
		quick: password.NewHasher(password.Cost{Memory: 64, Time: 1, Threads: 1}),
	}
	if s.tasks != nil {
		s.tasks.Register(purgeKind, purger{s})
	}
	return s
}

// bindable returns a policy that can be attached; nil for a nil ID.
func bindable(ctx context.Context, tx *ent.Tx, id *uuid.UUID) error {
	if id == nil {
		return nil
	}
	if _, err := tx.ResourcePolicy.Get(ctx, *id); err != nil {
		return permit.Missing(err, "policy", "policy")
	}
	return nil
}
