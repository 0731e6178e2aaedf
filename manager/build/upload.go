package build

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/image"
	"github.com/berthhq/berth/manager/permit"
)

// Limits of files that are sent in parts.
const (
	// maxPart is the size of a part, which a manager reads into memory.
	maxPart = 8 << 20
	// maxStored limits the parts that a user has stored, if no policy limits the size of their images to less.
	maxStored = 4 << 30
	// maxParallel limits the parts that one person sends to one manager at the same time.
	maxParallel = 4
	// partTime is the time limit of a part: 8 MiB at 140 kB/s.
	partTime = time.Minute
)

// Register adds the routes for files of builds, which are sent in parts before BuildImage:
//
//	POST /images/files           stores the body, and answers {"digest": "sha256:…"}
//	HEAD /images/files/{digest}  reports whether the user's part is stored
func (s *Service) Register(mux *http.ServeMux) {
	mux.HandleFunc("POST /images/files", s.answering(s.receive))
	mux.HandleFunc("HEAD /images/files/{digest}", s.answering(s.look))
}

// answering checks the user, and writes errors.
func (s *Service) answering(do func(http.ResponseWriter, *http.Request, *viewer.Viewer) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), partTime)
		defer cancel()
		v, err := permit.Writer(ctx)
		if err == nil && v.Scopes != nil && !v.Allows(access.TokenSessions) {
			err = problem.Forbidden("the access token lacks the scope %s", access.TokenSessions)
		}
		if err == nil {
			err = do(w, r.WithContext(ctx), v)
		}
		if err != nil && !problem.WriteHTTP(w, r, err) {
			s.Logger.ErrorContext(ctx, "receive files of a build", "error", err)
		}
	}
}

// receive stores a part.
func (s *Service) receive(w http.ResponseWriter, r *http.Request, v *viewer.Viewer) error {
	leave, ok := s.parts.Try(v.Person(), maxParallel)
	if !ok {
		return problem.Exhausted("you are sending %d parts to this manager; wait until one is complete", maxParallel).
			WithLimit(strconv.Itoa(maxParallel)).RetryAfter(time.Second)
	}
	defer leave()
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(partTime))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPart))
	if long := (*http.MaxBytesError)(nil); errors.As(err, &long) {
		return problem.TooLarge("body", maxPart)
	}
	if err != nil {
		return problem.Invalid("body", "ends early: %v", err)
	}
	if len(body) == 0 {
		return problem.Invalid("body", "is empty")
	}
	most, err := s.stored(r.Context(), v)
	if err != nil {
		return err
	}
	digest, err := s.Images.PutPart(r.Context(), v.User, body, most)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	return json.NewEncoder(w).Encode(map[string]string{"digest": digest})
}

// stored returns the bytes of parts that a user can have.
func (s *Service) stored(ctx context.Context, v *viewer.Viewer) (int64, error) {
	spare, err := s.Commits.Spare(ctx, v.Domain, v.User)
	if err != nil {
		return 0, err
	}
	if spare != nil && *spare < maxStored {
		return *spare, nil
	}
	return maxStored, nil
}

// look answers 200 with the size of a part that is stored, and 404 otherwise.
func (s *Service) look(w http.ResponseWriter, r *http.Request, v *viewer.Viewer) error {
	size, err := s.Images.PartSize(r.Context(), v.User, r.PathValue("digest"))
	switch {
	case errdefs.IsNotFound(err):
		return problem.NotFound("part")
	case errdefs.IsInvalidArgument(err):
		return problem.Invalid("digest", "%.80q is not a digest such as sha256:…", r.PathValue("digest"))
	case err != nil:
		return err
	}
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	return nil
}

// keep keeps the parts of a new build.
func (s *Service) keep(ctx context.Context, v *viewer.Viewer, parts []string) (*image.Kept, error) {
	if len(parts) == 0 {
		return nil, nil
	}
	if len(parts) > image.MaxParts {
		return nil, problem.Invalid("files", "has %d parts, more than %d", len(parts), image.MaxParts).WithLimit(fmt.Sprint(image.MaxParts))
	}
	return s.Images.KeepParts(ctx, v.User, parts)
}

// release gives up the parts of a build that has ended. What fails here, the sweep of the registry repeats some days
// later.
func (s *Service) release(ctx context.Context, owner uuid.UUID, files *image.Kept) {
	if files == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), partTime)
	defer cancel()
	if err := s.Images.ReleaseParts(ctx, owner, files.Manifest); err != nil {
		s.Logger.WarnContext(ctx, "release the files of a build", "error", err)
	}
}

// releaseInput gives up the parts of a build, as they were before its end.
func (s *Service) releaseInput(ctx context.Context, b *ent.ImageBuild) {
	if len(b.InputSealed) == 0 {
		return
	}
	in, err := s.open(b.InputSealed)
	if err != nil {
		s.Logger.WarnContext(ctx, "release the files of a build", "build", b.ID, "error", err)
		return
	}
	s.release(ctx, b.OwnerID, in.Files)
}
