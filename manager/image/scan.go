package image

import (
	"context"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/registry/remote"
)

// ScanRegistryInput names the registry to scan.
type ScanRegistryInput struct{ ID uuid.UUID }

// ScanResult is the result for one tag: an image or an error.
type ScanResult struct {
	Reference string
	Image     *ent.Image
	Error     *string
}

// ScanRegistryPayload is the registry and one result per tag and architecture.
type ScanRegistryPayload struct {
	Registry *ent.Registry
	Results  []*ScanResult
}

// ScanRegistry reads all tags of a registry. A tag that cannot be read does not stop the scan.
// Images that no longer exist are marked as gone.
func (s *Service) ScanRegistry(ctx context.Context, in ScanRegistryInput) (*ScanRegistryPayload, error) {
	r, err := s.changeable(ctx, in.ID, access.Update)
	if err != nil {
		return nil, err
	}
	scan := &scan{Service: s, registry: r, met: map[pair]bool{}, unread: map[string]bool{}, results: []*ScanResult{}}
	from, err := s.reach(r)
	if err != nil {
		return nil, err
	}
	if err := from.Scan(ctx, func(name string, images []remote.Image, err error) error {
		return scan.tag(ctx, name, images, err)
	}); err != nil {
		return nil, fmt.Errorf("scan registry: %w", explain(r, "its list of images", err))
	}
	if err := s.gone(ctx, r, scan.met, scan.unread); err != nil {
		return nil, fmt.Errorf("mark missing images: %w", err)
	}
	if r, err = r.Update().SetLastScannedAt(time.Now().UTC().Truncate(time.Microsecond)).Save(ctx); err != nil {
		return nil, fmt.Errorf("note the scan: %w", err)
	}
	return &ScanRegistryPayload{Registry: r, Results: scan.results}, nil
}

// scan is one scan of a registry.
type scan struct {
	*Service
	registry *ent.Registry
	met      map[pair]bool
	unread   map[string]bool // references
	results  []*ScanResult
}

func (s *scan) tag(ctx context.Context, name string, images []remote.Image, err error) error {
	if ctx.Err() != nil {
		return ctx.Err() // the whole scan was cancelled
	}
	full := s.registry.Host + "/" + name
	var rows []*ent.Image
	if err == nil {
		rows, err = s.record(ctx, s.registry, name, images)
	}
	if err != nil {
		s.unread[full] = !errdefs.IsNotFound(err)
		p, _ := problem.From(explain(s.registry, full, err))
		s.results = append(s.results, &ScanResult{Reference: full, Error: &p.Message})
		return nil
	}
	for _, row := range rows {
		s.met[pair{row.Reference, row.Architecture}] = true
		s.results = append(s.results, &ScanResult{Reference: full, Image: row})
	}
	return nil
}
