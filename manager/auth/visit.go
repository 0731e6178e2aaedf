package auth

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"

	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
)

// Visitor returns the viewer of an access token that a client sent to a storage proxy, and the
// client's address: peer is the address of its connection, and forwarded the forwarding
// headers of its request.
func (s *Service) Visitor(ctx context.Context, token, peer string, forwarded []string) (*viewer.Viewer, netip.Addr, error) {
	ctx, from := s.visit(ctx, peer, forwarded)
	v, err := s.Bearer(ctx, "Bearer "+token)
	return v, from, err
}

func (s *Service) visit(ctx context.Context, peer string, forwarded []string) (context.Context, netip.Addr) {
	r := &http.Request{RemoteAddr: peer, Header: http.Header{"X-Forwarded-For": forwarded}}
	ctx = s.addressed(r.WithContext(ctx)).Context()
	return ctx, AddressFrom(ctx)
}

// liveKeys selects valid SSH keys. A key gives access to folders only.
var liveKeys = fmt.Sprintf(live, "created_at", "ssh_keys", "c.fingerprint = $1 AND (c.expires_at IS NULL OR c.expires_at > now()) AND ",
	fmt.Sprintf(`'["%s"]'::json`, access.TokenFolders), "NULL::uuid", "''", "c.expires_at", noSecret, noRate)

// Keyholder returns the viewer of an SSH key that a client presented to a storage proxy. The
// proxy has verified that the client has the private key.
func (s *Service) Keyholder(ctx context.Context, email string, public []byte, peer string) (*viewer.Viewer, netip.Addr, error) {
	ctx, from := s.visit(ctx, peer, nil)
	key, err := ssh.ParsePublicKey(public)
	if err != nil {
		return nil, from, problem.Unauthenticated(refused)
	}
	found, err := s.find(ctx, liveKeys+"u.email = lower($2)", ssh.FingerprintSHA256(key), email)
	if err != nil {
		return nil, from, err
	}
	if len(found) == 0 || !fromAllowed(found[0].addresses, from) {
		return nil, from, problem.Unauthenticated(refused)
	}
	return found[0].viewer, from, nil
}
