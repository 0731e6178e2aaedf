package remote

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/google/go-containerregistry/pkg/name"
)

// The rules of the OCI distribution specification. The library accepts more, and would accept ../
// for example.
var (
	repositoryRule = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	tagRule        = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$`)
)

func (r Registry) registry() (name.Registry, error) {
	var opts []name.Option
	if r.PlainHTTP {
		opts = append(opts, name.Insecure)
	}
	reg, err := name.NewRegistry(r.Host, opts...)
	if err != nil {
		return name.Registry{}, fmt.Errorf("registry %q: %w: %w", r.Host, errdefs.ErrInvalidArgument, err)
	}
	return reg, nil
}

// repository is built from its parts: parsed as one string, a host without a dot
// or a port would be taken for a repository of Docker Hub.
func (r Registry) repository(path string) (name.Repository, error) {
	reg, err := r.registry()
	if err != nil {
		return name.Repository{}, err
	}
	if !repositoryRule.MatchString(path) {
		return name.Repository{}, fmt.Errorf("%q is not the name of a repository: %w", path, errdefs.ErrInvalidArgument)
	}
	return reg.Repo(path), nil
}

// reference reads repository:tag or repository@digest.
func (r Registry) reference(image string) (name.Reference, error) {
	path, digest, byDigest := strings.Cut(image, "@")
	path, tag, tagged := strings.Cut(path, ":")
	repo, err := r.repository(path)
	if err != nil {
		return nil, fmt.Errorf("image %q: %w", image, err)
	}
	switch {
	case byDigest:
		d, err := name.NewDigest(repo.String() + "@" + digest)
		if err != nil {
			return nil, fmt.Errorf("image %q: %w: %w", image, errdefs.ErrInvalidArgument, err)
		}
		return repo.Digest(d.DigestStr()), nil
	case !tagged:
		return nil, fmt.Errorf("image %q has neither tag nor digest: %w", image, errdefs.ErrInvalidArgument)
	case !tagRule.MatchString(tag):
		return nil, fmt.Errorf("image %q has an invalid tag: %w", image, errdefs.ErrInvalidArgument)
	}
	return repo.Tag(tag), nil
}
