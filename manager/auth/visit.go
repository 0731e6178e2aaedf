package auth

import (
	"context"
	"net/http"

	"github.com/berthhq/berth/internal/viewer"
)

// Visitor finds the viewer of an access token that was shown to a storage proxy:
// the peer is who connected there, and forwarded what his request says of where it
// came from.
func (s *Service) Visitor(ctx context.Context, token, peer string, forwarded []string) (*viewer.Viewer, error) {
	r := &http.Request{RemoteAddr: peer, Header: http.Header{"X-Forwarded-For": forwarded}}
	return s.Bearer(s.addressed(r.WithContext(ctx)).Context(), "Bearer "+token)
}
