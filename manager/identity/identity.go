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

// Logins ends what people have open because the rights it was opened with have
// changed.
type Logins interface {
	// EndLogins revokes the logins of a user in a transaction.
	EndLogins(ctx context.Context, tx *ent.Tx, user uuid.UUID) error
	// EndCredentials ends the access tokens, keypairs and SSH keys of a user in a
	// transaction and returns the ids of those that were in use.
	EndCredentials(ctx context.Context, tx *ent.Tx, user uuid.UUID) ([]uuid.UUID, error)
	// EndLoginsOutside revokes those of them that came from none of the addresses.
	EndLoginsOutside(ctx context.Context, tx *ent.Tx, user uuid.UUID, allowed []string) error
	// Recheck closes what a user has open and may not have any more. It is called
	// after the commit, as is Disconnect.
	Recheck(ctx context.Context, user uuid.UUID)
	// Disconnect closes what is open with a credential or by a user.
	Disconnect(ctx context.Context, credentialOrUser uuid.UUID)
}

// Address tells where the request of a context comes from; the zero address when
// no one knows.
type Address func(ctx context.Context) netip.Addr

// Config are the parts a Service works with.
type Config struct {
	Client    *ent.Client
	Passwords *password.Hasher
	Logins    Logins
	Address   Address // nil: never known
	Tasks     *task.Service
	Sessions  Sessions
	Folders   Folders
	Purged    Purged // nil: no one is told
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
	// quick hashes generated passwords: with more than 110 bits they need no slow
	// hash, and the first login hashes what is chosen instead anyway.
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

// bindable reads a policy that is to be attached; nil asks for none.
func bindable(ctx context.Context, tx *ent.Tx, id *uuid.UUID) error {
	if id == nil {
		return nil
	}
	if _, err := tx.ResourcePolicy.Get(ctx, *id); err != nil {
		return permit.Missing(err, "policy", "policy")
	}
	return nil
}
