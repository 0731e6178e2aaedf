package manager

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/audit"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/identity"
	"github.com/berthhq/berth/manager/identity/password"
	"github.com/berthhq/berth/manager/oidc"
	"github.com/berthhq/berth/manager/signup"
	"github.com/berthhq/berth/manager/vfolder"
)

// wireAuth creates the service that authenticates users.
func (m *Manager) wireAuth(hasher *password.Hasher) error {
	var trusted []netip.Prefix
	for _, text := range m.cfg.TrustedProxies {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("trusted proxy %q is not a network such as 10.0.0.0/8: %w", text, err)
		}
		trusted = append(trusted, p)
	}
	if err := publicURL(m.cfg.PublicURL); err != nil {
		return err
	}
	m.auth = auth.New(auth.Config{
		PublicURL: strings.TrimRight(m.cfg.PublicURL, "/"),
		Client:    m.client, Bus: m.bus, Redis: m.redis, Passwords: hasher, Keys: m.keys, TrustedProxies: trusted, Registry: m.meter(), Logger: m.log,
	})
	return nil
}

// wirePeople creates the services of users.
func (m *Manager) wirePeople(hasher *password.Hasher) {
	m.identity = identity.New(identity.Config{
		Client: m.client, Passwords: hasher, Logins: m.auth, Address: auth.AddressFrom,
		Tasks: m.tasks, Sessions: m.core.Sessions, Folders: m.folders, Purged: m.purged, Logger: m.log,
	})
	m.providers = oidc.New(oidc.Config{Client: m.client, Keys: m.keys, Auth: m.auth, Redis: m.redis, Logger: m.log})
	m.signups = signup.New(signup.Config{Client: m.client, Auth: m.auth, Passwords: hasher, Logger: m.log})
}

// publicURL checks the configured public URL.
func publicURL(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return fmt.Errorf("public URL %q is not of the form https://HOST[:PORT]: %w", text, errdefs.ErrInvalidArgument)
	}
	return nil
}

// purged writes the removal of a user to the audit log, in the name of the user who requested
// it.
func (m *Manager) purged(ctx context.Context, by uuid.UUID, who *ent.User, folders string) {
	e := audit.Entry{Action: "deleteUser.done", Entity: access.User, ID: who.ID, Domain: who.DomainID, Message: who.Email + ", " + folders}
	if u, err := m.client.User.Get(viewer.SystemContext(ctx), by); err == nil {
		ctx = viewer.With(ctx, &viewer.Viewer{User: u.ID, Email: u.Email, Domain: u.DomainID, Role: viewer.Role(u.Role)})
	}
	m.audit.Record(ctx, e)
}

// recovering writes to the audit log that a leader turned recovery mode on.
func (m *Manager) recovering(ctx context.Context, reason string) {
	m.audit.Record(ctx, audit.Entry{Action: "enterRecovery", Entity: access.System, Message: reason})
}

// fileActivity writes to the audit log what a client did with files through a storage proxy.
func (m *Manager) fileActivity(ctx context.Context, d vfolder.FileActivity) {
	ctx = audit.From(viewer.With(ctx, d.Who), d.Address)
	m.audit.Record(ctx, audit.Entry{Action: d.Action, Entity: access.Vfolder, ID: d.Folder, Message: d.Message, Duration: d.Took})
}

// InitialPassword reports whether the user still has the generated password.
func (m *Manager) InitialPassword(ctx context.Context, email string) (bool, error) {
	return m.client.User.Query().Where(user.Email(email), user.InitialPassword(true)).Exist(viewer.SystemContext(ctx))
}
