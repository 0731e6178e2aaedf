package manager

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/identity"
	"github.com/berthhq/berth/manager/identity/password"
	"github.com/berthhq/berth/manager/oidc"
	"github.com/berthhq/berth/manager/signup"
)

// wirePeople puts together who people are and how they show it.
func (m *Manager) wirePeople() error {
	var trusted []netip.Prefix
	for _, text := range m.cfg.TrustedProxies {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("trusted proxy %q is no network such as 10.0.0.0/8: %w", text, err)
		}
		trusted = append(trusted, p)
	}
	hasher := password.NewHasher(password.DefaultCost())
	m.auth = auth.New(auth.Config{
		Client: m.client, Bus: m.bus, Redis: m.redis, Passwords: hasher, Keys: m.keys, TrustedProxies: trusted, Logger: m.log,
	})
	m.identity = identity.New(identity.Config{Client: m.client, Passwords: hasher, Logins: m.auth, Address: auth.AddressFrom, Logger: m.log})
	m.providers = oidc.New(oidc.Config{Client: m.client, Keys: m.keys, Auth: m.auth, Redis: m.redis, Logger: m.log})
	m.signups = signup.New(signup.Config{Client: m.client, Auth: m.auth, Passwords: hasher, Logger: m.log})
	return nil
}

// InitialPassword tells whether the user still has the generated password.
func (m *Manager) InitialPassword(ctx context.Context, email string) (bool, error) {
	return m.client.User.Query().Where(user.Email(email), user.InitialPassword(true)).Exist(viewer.SystemContext(ctx))
}
