package image

import (
	"context"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/problem"
)

// PullRequest returns the request with which an agent pulls an image, with the credentials of the image's registry. The
// image has its registry loaded.
func (s *Service) PullRequest(ctx context.Context, img *ent.Image) (*agentpb.PullImageRequest, error) {
	reg := img.Edges.Registry
	if reg == nil {
		return nil, problem.Precondition("the registry of image %s was removed", img.Name)
	}
	username, password, err := s.Login(ctx, reg)
	if err != nil {
		return nil, err
	}
	mirrors, err := s.mirrors(reg)
	if err != nil {
		return nil, err
	}
	return &agentpb.PullImageRequest{
		Reference: img.Reference, Digest: img.Digest,
		PlainHttp: reg.PlainHTTP, Username: username, Password: password, Proxy: reg.Proxy, Certificates: reg.Certificates,
		Lazy: reg.LazyStart, Mirrors: mirrors,
	}, nil
}
