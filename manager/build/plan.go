package build

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/imagebuild"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/recipe"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/manager/image"
)

// Limits of a build's input.
const (
	maxUpload  = 640 << 10 // in base64, below the largest request of the API, which has 1 MiB
	maxContext = 8 << 20   // with the files that the description adds; an agent takes requests of up to 16 MiB
	maxValues  = 64
	maxValue   = 32 << 10
)

// plan is what a build is going to do.
type plan struct {
	dockerfile string
	digest     string // of everything that the result depends on
	base       *ent.Image
	input      input
}

// input is the part of a build that is kept until its end.
type input struct {
	Context []byte
	Files   *image.Kept `json:",omitempty"` // that were sent in parts; nil: none
	Git     *repository `json:",omitempty"` // nil: the description is known
	Target  string
	Args    map[string]string
	Secrets map[string]string
	NoCache bool
	Images  map[string]string // names in the Dockerfile to references with digests
	Hosts   []string          // registries of Images
}

// plan reads the description and resolves its images as the viewer.
func (s *Service) plan(ctx context.Context, in BuildImageInput) (*plan, error) {
	context, err := decode(in)
	if err != nil {
		return nil, err
	}
	if in.Kind == imagebuild.KindGit {
		return s.gitPlan(ctx, in)
	}
	if in.Git != nil {
		return nil, problem.Invalid("git", "is for builds of the kind GIT")
	}
	source, err := recipe.Read(recipe.Kind(in.Kind), in.Text, value(in.Base), context)
	if err != nil {
		return nil, malformed("text", err)
	}
	p := &plan{dockerfile: source.Dockerfile, input: input{
		Target: value(in.Target), Args: map[string]string{}, Secrets: in.Secrets, NoCache: in.NoCache != nil && *in.NoCache,
	}}
	maps.Copy(p.input.Args, source.Args)
	maps.Copy(p.input.Args, in.Args)
	if p.input.Context, err = recipe.Archive(context, source.Files); err != nil {
		return nil, malformed("context", err)
	}
	if len(p.input.Context) > maxContext {
		return nil, problem.Invalid("context", "the files of the build have %d bytes, more than %d", len(p.input.Context), maxContext).WithLimit(fmt.Sprint(maxContext))
	}
	if err := s.resolve(ctx, p); err != nil {
		return nil, err
	}
	p.digest = p.sum(in.Files)
	return p, nil
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func malformed(field string, err error) error {
	if errdefs.IsInvalidArgument(err) {
		return problem.Invalid(field, "%s", strings.TrimSuffix(err.Error(), ": "+errdefs.ErrInvalidArgument.Error()))
	}
	return err
}

// decode returns the files, and checks the other parts of the input that have no form of their own.
func decode(in BuildImageInput) ([]byte, error) {
	for field, values := range map[string]map[string]string{"args": in.Args, "secrets": in.Secrets} {
		if len(values) > maxValues {
			return nil, problem.Invalid(field, "has %d values, more than %d", len(values), maxValues).WithLimit(fmt.Sprint(maxValues))
		}
		for name, v := range values {
			if name == "" || len(name) > 128 || strings.ContainsAny(name, "/=:, \t\r\n\x00") || len(v) > maxValue {
				return nil, problem.Invalid(field, "%.100q is not a name of at most 128 characters with a value of at most %d bytes", name, maxValue)
			}
		}
	}
	if _, taken := in.Args["SOURCE_DATE_EPOCH"]; taken {
		return nil, problem.Invalid("args", "SOURCE_DATE_EPOCH is set by Berth")
	}
	for name := range in.Args {
		if strings.HasPrefix(name, "BUILDKIT_") {
			return nil, problem.Invalid("args", "%s would change the builder", name)
		}
	}
	text := value(in.Context)
	if len(text) > base64.StdEncoding.EncodedLen(maxUpload) {
		return nil, problem.Invalid("context", "the files have more than %d bytes: send them in parts, and name the parts in files", maxUpload).WithLimit(fmt.Sprint(maxUpload))
	}
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, problem.Invalid("context", "is not base64: %v", err)
	}
	if err := recipe.Entries(b, nil); err != nil {
		return nil, malformed("context", err)
	}
	return b, nil
}

// resolve finds the images that the Dockerfile names among those that the viewer can use, and pins them.
func (s *Service) resolve(ctx context.Context, p *plan) error {
	named, err := recipe.NamedImages(p.dockerfile, p.input.Args)
	if err != nil {
		return malformed("text", err)
	}
	if named.Base == "" {
		return problem.Invalid("text", "the Dockerfile names no image; its session needs one that is registered")
	}
	p.input.Images = map[string]string{}
	for _, name := range named.All {
		img, err := s.Images.Resolve(ctx, name)
		if err != nil {
			var known *problem.Error
			if errors.As(err, &known) {
				return known.WithField("text")
			}
			return err
		}
		host, _, _ := strings.Cut(img.Reference, "/")
		p.input.Images[name] = img.Reference[:strings.LastIndexByte(img.Reference, ':')] + "@" + img.Digest
		if !slices.Contains(p.input.Hosts, host) {
			p.input.Hosts = append(p.input.Hosts, host)
		}
		if name == named.Base {
			p.base = img
		}
	}
	if p.base == nil {
		return problem.Invalid("text", "the image %s of the last stage is not found", named.Base)
	}
	return nil
}

// sum returns the digest of everything that the result depends on. Files that are the same in another archive
// result in another digest, but the steps are cached by content.
func (p *plan) sum(files []string) string {
	h := sha256.New()
	enc := json.NewEncoder(h)
	all := []any{p.dockerfile, p.input.Context, p.input.Target, p.input.Args, p.input.Images}
	if len(files) > 0 {
		all = append(all, files)
	}
	_ = enc.Encode(all) // strings have a form in JSON
	return hex.EncodeToString(h.Sum(nil))
}

func (s *Service) seal(in input) ([]byte, error) {
	b, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("encode the input of a build: %w", err)
	}
	return s.Keys.Seal(seal.BuildInput, b), nil
}

func (s *Service) open(sealed []byte) (in input, err error) {
	b, err := s.Keys.Open(seal.BuildInput, sealed)
	if err != nil {
		return in, fmt.Errorf("decrypt the input of a build: %w", err)
	}
	if err := json.Unmarshal(b, &in); err != nil {
		return in, fmt.Errorf("decode the input of a build: %w", err)
	}
	return in, nil
}
