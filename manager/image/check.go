package image

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/egress"
	"github.com/berthhq/berth/internal/registry/remote"
)

// TestRegistryInput names the registry to test.
type TestRegistryInput struct{ ID uuid.UUID }

// TestRegistryPayload is the registry and what works.
type TestRegistryPayload struct {
	Registry *ent.Registry
	Checks   []*RegistryCheck
}

// RegistryCheck is one thing that was tried.
type RegistryCheck struct {
	Step  string // REACHABLE, TLS, LOGIN, LISTING
	Works bool
	Text  string
}

// The steps of a test.
const (
	stepReachable = "REACHABLE"
	stepTLS       = "TLS"
	stepLogin     = "LOGIN"
	stepListing   = "LISTING"
)

// checkTimeout limits a test.
const checkTimeout = 20 * time.Second

// TestRegistry tries to reach a registry, to log in and to list.
func (s *Service) TestRegistry(ctx context.Context, in TestRegistryInput) (*TestRegistryPayload, error) {
	r, err := s.changeable(ctx, in.ID, access.Update)
	if err != nil {
		return nil, err
	}
	c, err := s.reach(r)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return &TestRegistryPayload{Registry: r, Checks: check(ctx, r, c)}, nil
}

func check(ctx context.Context, r *ent.Registry, c *remote.Client) []*RegistryCheck {
	var checks []*RegistryCheck
	say := func(step string, works bool, text string, args ...any) {
		checks = append(checks, &RegistryCheck{step, works, fmt.Sprintf(text, args...)})
	}
	err := c.Ping(ctx)
	if why := untrusted(err); why != "" {
		say(stepReachable, true, "%s answers.", r.Host)
		say(stepTLS, false, "%s", why)
		return checks
	}
	busy := (*remote.Busy)(nil)
	switch {
	case errors.As(err, &busy):
		say(stepReachable, false, "The registry asks to wait %s.", busy.After)
		return checks
	case errdefs.IsNotFound(err):
		say(stepReachable, false, "%s answers, but not as an image registry: it has no /v2/.", r.Host)
		return checks
	case err != nil && !errdefs.IsUnauthorized(err) && !errdefs.IsPermissionDenied(err) && !errdefs.IsInvalidArgument(err):
		say(stepReachable, false, "%s does not answer: %s.", r.Host, egress.Plain(err))
		return checks
	}
	say(stepReachable, true, "%s answers.", r.Host)
	if r.PlainHTTP {
		say(stepTLS, true, "The registry uses http without encryption, as it is set: the password can be read on the way.")
	} else {
		say(stepTLS, true, "The certificate is trusted.")
	}
	switch {
	case errdefs.IsInvalidArgument(err):
		say(stepLogin, false, "The login was stopped: %s.", err)
		return checks
	case err != nil:
		say(stepLogin, false, "The registry refuses the user name and password, or requires them: %s.", err)
		return checks
	case c.Asked() == "":
		say(stepLogin, true, "The registry asks for no login.")
	case c.Anonymous():
		say(stepLogin, true, "The registry accepts readers without a login; private repositories need one.")
	default:
		say(stepLogin, true, "The registry accepts the user name and password.")
	}
	works, text := listing(ctx, r, c)
	say(stepListing, works, "%s", text)
	return checks
}

// untrusted explains an error of TLS; "" for other errors.
func untrusted(err error) string {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var header tls.RecordHeaderError
	switch {
	case errors.As(err, &unknown):
		return "The certificate is signed by an authority that is not trusted. Set the certificates of the registry."
	case errors.As(err, &name):
		return "The certificate is for another host: " + name.Error() + "."
	case errors.As(err, &invalid):
		return "The certificate is not valid: " + invalid.Error() + "."
	case errors.As(err, &header), err != nil && strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "The registry speaks http without encryption. If that is intended, set plain HTTP."
	}
	return ""
}

func listing(ctx context.Context, r *ent.Registry, c *remote.Client) (bool, string) {
	for _, p := range r.Repositories {
		if strings.Contains(p, "*") {
			continue
		}
		tags, err := c.Tags(ctx, p)
		if err != nil {
			return false, fmt.Sprintf("The tags of %s cannot be listed: %s.", p, err)
		}
		return true, fmt.Sprintf("Repository %s has tags: %d.", p, len(tags))
	}
	for _, p := range r.Repositories {
		if project, rest, ok := strings.Cut(p, "/"); ok && rest != "" && !strings.Contains(project, "*") && c.IsHarbor() {
			names, err := c.Project(ctx, project)
			if err != nil {
				return false, fmt.Sprintf("The repositories of Harbor's project %s cannot be listed: %s.", project, err)
			}
			return true, fmt.Sprintf("Harbor's project %s has repositories: %d.", project, len(names))
		}
	}
	if err := c.Lists(ctx); err != nil {
		return false, "The registry does not list its repositories. Set the names of those that scans read, or register images one by one."
	}
	return true, "The registry lists its repositories."
}
