package image

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"
	godigest "github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/registry/pushtoken"
	"github.com/berthhq/berth/internal/registry/remote"
)

// The files of builds are stored in the registry for images of sessions, in parts, in one repository for each user.
// Parts that no manifest names are removed by the first sweep after the grace time, so an upload that ends early needs
// no other record.
const (
	// partsPath is the beginning of the names of these repositories, which are not images.
	partsPath = "uploads/"
	// MaxParts limits the parts that the registry has of one user.
	MaxParts = 2048
	// partType is the media type of a part.
	partType = "application/vnd.berthhq.build.part"
)

// PartsRepository returns the repository with the parts of a user's files.
func PartsRepository(user uuid.UUID) string {
	return partsPath + strings.ReplaceAll(user.String(), "-", "")
}

// parts opens the parts of a user, who can have at most the given bytes of them. Close the client.
func (s *Service) parts(ctx context.Context, user uuid.UUID, most int64) (*ent.Registry, *remote.Client, error) {
	return s.openOwn(ctx, func(r *ent.Registry) (*remote.Client, error) {
		token, err := s.own.Key.Sign(pushtoken.Grant{
			Repository: PartsRepository(user), Delete: true, Expires: time.Now().Add(time.Minute),
			Quota: &pushtoken.Quota{Of: "the files of your builds", Max: most, Blobs: MaxParts},
		})
		if err != nil {
			return nil, err
		}
		return remote.Open(remote.Registry{Host: r.Host, PlainHTTP: r.PlainHTTP, Username: pushtoken.User, Password: token, Proxy: r.Proxy, CA: r.Certificates})
	})
}

// PutPart stores a part of a user's files, and returns its digest. A part that is stored again is stored once.
func (s *Service) PutPart(ctx context.Context, user uuid.UUID, body []byte, most int64) (string, error) {
	r, to, err := s.parts(ctx, user, most)
	if err != nil {
		return "", err
	}
	defer to.Close()
	digest, err := to.PutBlob(ctx, PartsRepository(user), body)
	if errdefs.IsPermissionDenied(err) {
		return "", problem.Exhausted("the files of your builds that are stored have %d bytes or %d parts: the next sweep of the registry removes those that no build has used for 3 hours", most, MaxParts).
			WithField("files").WithLimit(fmt.Sprint(most)).Because(err)
	}
	if err != nil {
		return "", explain(r, "the files of builds", err)
	}
	return digest, nil
}

// PartSize returns the size of a part of a user's files, and NotFound without it. It keeps the part for the grace time.
func (s *Service) PartSize(ctx context.Context, user uuid.UUID, digest string) (int64, error) {
	_, from, err := s.parts(ctx, user, 0)
	if err != nil {
		return 0, err
	}
	defer from.Close()
	return from.BlobSize(ctx, PartsRepository(user), digest)
}

// Kept are the files of a build in the registry.
type Kept struct {
	Parts    []string // digests, in order
	Size     int64
	Manifest string // digest of the manifest that keeps them
}

// KeepParts makes sweeps keep parts of a user's files until ReleaseParts, for at most the time of manifests without a
// tag. A part that is missing, or was stored by another user, is an error that names files.
func (s *Service) KeepParts(ctx context.Context, user uuid.UUID, parts []string) (*Kept, error) {
	r, to, err := s.parts(ctx, user, 0)
	if err != nil {
		return nil, err
	}
	defer to.Close()
	out, m := &Kept{Parts: parts}, partsManifest()
	for i, digest := range parts {
		n, err := to.BlobSize(ctx, PartsRepository(user), digest)
		switch {
		case errdefs.IsNotFound(err):
			return nil, problem.Invalid("files", "part %d, %.80s, is not stored: send it again", i+1, digest)
		case errdefs.IsInvalidArgument(err):
			return nil, problem.Invalid("files", "%.80q is not a digest such as sha256:…", digest)
		case err != nil:
			return nil, explain(r, "the files of a build", err)
		}
		out.Size += n
		m.Layers = append(m.Layers, ocispec.Descriptor{MediaType: partType, Digest: godigest.Digest(digest), Size: n})
	}
	m.Config = m.Layers[0] // a manifest needs one
	text, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode the list of a build's files: %w", err)
	}
	if out.Manifest, err = to.PutManifest(ctx, PartsRepository(user), ocispec.MediaTypeImageManifest, text); err != nil {
		return nil, explain(r, "the files of a build", err)
	}
	return out, nil
}

// partsManifest returns a manifest that no other build has.
func partsManifest() *ocispec.Manifest {
	return &ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: partType,
		Annotations: map[string]string{"com.berthhq.build": uuid.NewString()},
	}
}

// ReleaseParts lets the next sweep remove parts that no other build of the user has.
func (s *Service) ReleaseParts(ctx context.Context, user uuid.UUID, manifest string) error {
	_, to, err := s.parts(ctx, user, 0)
	if err != nil {
		return err
	}
	defer to.Close()
	return to.Delete(ctx, PartsRepository(user)+"@"+manifest)
}
