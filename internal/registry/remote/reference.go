package remote

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/containerd/errdefs"
)

// The rules of the OCI distribution specification. Names, tags and digests become parts of URLs
// only if they match.
var (
	repositoryRule = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	tagRule        = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$`)
	digestRule     = regexp.MustCompile(`^sha256:[a-f0-9]{64}$`)
)

// maxRepository is the longest name of a repository.
const maxRepository = 255

// reference is a parsed repository:tag or repository@digest.
type reference struct{ path, version string }

// manifest returns the path of the URL of the manifest.
func (r reference) manifest() string { return "/v2/" + r.path + "/manifests/" + r.version }

func checkRepository(path string) error {
	if len(path) > maxRepository || !repositoryRule.MatchString(path) {
		return fmt.Errorf("%.80q is not the name of a repository: %w", path, errdefs.ErrInvalidArgument)
	}
	return nil
}

// parse reads repository:tag or repository@digest.
func parse(image string) (reference, error) {
	path, digest, byDigest := strings.Cut(image, "@")
	path, tag, tagged := strings.Cut(path, ":")
	if err := checkRepository(path); err != nil {
		return reference{}, fmt.Errorf("image %.80q: %w", image, err)
	}
	switch {
	case byDigest && !digestRule.MatchString(digest):
		return reference{}, fmt.Errorf("image %.80q has a digest that is not sha256: and 64 hexadecimal digits: %w", image, errdefs.ErrInvalidArgument)
	case byDigest:
		return reference{path, digest}, nil
	case !tagged:
		return reference{}, fmt.Errorf("image %.80q has neither tag nor digest: %w", image, errdefs.ErrInvalidArgument)
	case !tagRule.MatchString(tag):
		return reference{}, fmt.Errorf("image %.80q has an invalid tag: %w", image, errdefs.ErrInvalidArgument)
	}
	return reference{path, tag}, nil
}
