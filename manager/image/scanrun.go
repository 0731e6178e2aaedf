package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entimage "github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/ent/scanresult"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/registry/remote"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/task"
)

const (
	// tagTimeout limits the requests for one tag; time in which the registry asks to wait does not
	// count. listTimeout limits each list.
	tagTimeout, listTimeout = 30 * time.Second, 5 * time.Minute
	// atOnce limits the tags that one scan reads at the same time.
	atOnce = 8
	// maxRetries is how often a request is repeated because the registry asks to wait.
	maxRetries = 50
	// silence is the number of tags in a row without an answer after which a scan is interrupted.
	silence = 25
	maxTags = 200_000 // of one registry
)

// scanner runs the tasks that scan registries.
type scanner struct{ *Service }

// progress is the saved state of a task.
type progress struct{ Scan uuid.UUID }

// scan is one run of a task.
type scan struct {
	*Service
	registry *ent.Registry
	only     []string // repositories; empty: those of the settings
	from     *remote.Client
	at       *task.Progress
	state    progress
	gate     gate

	before map[string]*ent.ScanResult // by name: results of the scan before, and of this one before a crash
	alive  map[string]bool            // names of images
	listed map[string]bool            // names of tags that exist
	failed map[string]bool            // repositories that could not be listed
	tags   []remote.Tag               // with their full names, to be read
	// refusals are the results of repositories that could not be listed.
	refusals []result
	counts   map[scanresult.Outcome]int
	done     int64
}

// Run scans a registry. Results are saved as they come, so a run after a crash reads only the rest.
func (x scanner) Run(ctx context.Context, at *task.Progress, input []byte) error {
	ctx = viewer.SystemContext(ctx)
	var in scanning
	if err := json.Unmarshal(input, &in); err != nil {
		return fmt.Errorf("read input: %w", err)
	}
	r, err := x.client.Registry.Get(ctx, in.Registry)
	if err != nil {
		return permit.Missing(err, "registry", "")
	}
	from, err := x.reach(r)
	if err != nil {
		return explain(r, "its settings", err)
	}
	defer from.Close()
	s := &scan{
		Service: x.Service, registry: r, only: in.Repositories, from: from, at: at,
		listed: map[string]bool{}, failed: map[string]bool{}, counts: map[scanresult.Outcome]int{},
	}
	err = s.run(ctx)
	s.meter.requests.Add(float64(from.Requests()))
	result := "done"
	switch {
	case ctx.Err() != nil:
		result = "interrupted"
	case err != nil:
		result = "failed"
	}
	s.meter.scans.WithLabelValues(result).Inc()
	return err
}

func (s *scan) run(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	if err := s.list(ctx); err != nil {
		return err
	}
	if err := s.read(ctx); err != nil {
		return err
	}
	return s.end(ctx)
}

// begin reads what is known from earlier scans.
func (s *scan) begin(ctx context.Context) error {
	if err := s.at.State(&s.state); err != nil {
		return err
	}
	if s.state.Scan == uuid.Nil {
		s.state.Scan = uuid.New()
		if err := s.at.Save(ctx, s.state, 0, 0); err != nil {
			return err
		}
	}
	results, err := s.client.ScanResult.Query().Where(scanresult.RegistryID(s.registry.ID)).
		Select(scanresult.FieldName, scanresult.FieldOutcome, scanresult.FieldDigest, scanresult.FieldMessage, scanresult.FieldScanID).All(ctx)
	if err != nil {
		return fmt.Errorf("read results: %w", err)
	}
	s.before = make(map[string]*ent.ScanResult, len(results))
	for _, r := range results {
		s.before[r.Name] = r
	}
	names, err := s.client.Image.Query().Where(entimage.RegistryID(s.registry.ID), entimage.StatusEQ(entimage.StatusAlive)).
		Select(entimage.FieldName).Strings(ctx)
	if err != nil {
		return fmt.Errorf("read images: %w", err)
	}
	s.alive = make(map[string]bool, len(names))
	for _, n := range names {
		s.alive[n] = true
	}
	return nil
}

// gate delays all requests of a scan while the registry asks to wait.
type gate struct {
	mu    sync.Mutex
	until time.Time
}

func (g *gate) close(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if until := time.Now().Add(d); until.After(g.until) {
		g.until = until
	}
}

func (g *gate) wait(ctx context.Context) error {
	for {
		g.mu.Lock()
		d := time.Until(g.until)
		g.mu.Unlock()
		if d <= 0 {
			return ctx.Err()
		}
		t := time.NewTimer(d)
		select {
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-t.C:
		}
	}
}

// retry calls ask with a time limit, and again when the registry has asked to wait.
func (s *scan) retry(ctx context.Context, limit time.Duration, ask func(context.Context) error) error {
	for left := maxRetries; ; left-- {
		if err := s.gate.wait(ctx); err != nil {
			return err
		}
		limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s: %w", limit, errdefs.ErrUnavailable))
		err := ask(limited)
		if err != nil && limited.Err() != nil && ctx.Err() == nil {
			err = context.Cause(limited)
		}
		cancel()
		busy := (*remote.Busy)(nil)
		if !errors.As(err, &busy) || left == 0 {
			return err
		}
		s.gate.close(busy.After)
	}
}

// read reads the tags, several at once, and saves their results.
func (s *scan) read(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	work, found := make(chan remote.Tag), make(chan result)
	var readers sync.WaitGroup
	for range atOnce {
		readers.Go(func() {
			for tag := range work {
				r := s.tag(ctx, tag)
				select {
				case found <- r:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	readers.Go(func() {
		defer close(work)
		for _, tag := range s.tags {
			select {
			case work <- tag:
			case <-ctx.Done():
				return
			}
		}
	})
	err := s.collect(ctx, found, len(s.tags))
	stop()
	readers.Wait()
	return err
}

// result is what was found at one tag. Without an error, content is nil if nothing has changed.
type result struct {
	name    string
	outcome scanresult.Outcome
	digest  string
	message string
	content *remote.Content
	missing bool // the tag was listed, but does not exist
	silent  bool // the registry did not answer
}

// tag reads one tag, unless its digest is the one that was read before.
func (s *scan) tag(ctx context.Context, tag remote.Tag) result {
	old := s.before[tag.Name]
	if s.known(old) {
		digest := tag.Digest
		if digest == "" {
			err := s.retry(ctx, s.tagTimeout, func(ctx context.Context) (err error) {
				digest, err = s.from.Digest(ctx, tag.Name)
				return err
			})
			if err != nil {
				return s.refused(tag.Name, "", err)
			}
		}
		if digest == old.Digest {
			out := result{name: tag.Name, outcome: scanresult.OutcomeUnchanged, digest: digest, message: old.Message}
			if old.Outcome == scanresult.OutcomeFailed || old.Outcome == scanresult.OutcomeSkipped {
				out.outcome = old.Outcome // the same content has the same fault
			}
			return out
		}
	}
	var content *remote.Content
	err := s.retry(ctx, s.tagTimeout, func(ctx context.Context) (err error) {
		content, err = s.from.Inspect(ctx, tag.Name)
		return err
	})
	if err == nil {
		err = storableAll(content.Images)
	}
	if err == nil {
		err = s.retry(ctx, s.tagTimeout, func(ctx context.Context) error {
			return s.verify(ctx, s.registry, s.from, tag.Name, content)
		})
	}
	if err != nil {
		digest := ""
		if content != nil && !isUnsigned(err) && (errdefs.IsInvalidArgument(err) || errors.Is(err, remote.ErrNothing)) {
			digest = content.Digest
		}
		return s.refused(tag.Name, digest, err)
	}
	return result{name: tag.Name, digest: content.Digest, content: content}
}

// known reports whether a digest that equals the old one means that nothing has to be read.
func (s *scan) known(old *ent.ScanResult) bool {
	if old == nil || old.Digest == "" {
		return false
	}
	switch old.Outcome {
	case scanresult.OutcomeFailed, scanresult.OutcomeSkipped:
		return true
	case scanresult.OutcomeGone:
		return false
	}
	return s.alive[old.Name] // a deleted image is registered again
}

func (s *scan) refused(name, digest string, err error) result {
	r := result{name: name, outcome: scanresult.OutcomeFailed, digest: digest, missing: errdefs.IsNotFound(err)}
	if errors.Is(err, remote.ErrNothing) {
		r.outcome, r.message = scanresult.OutcomeSkipped, "It has no Linux image."
		return r
	}
	if isUnsigned(err) {
		r.message = unsigned
		return r
	}
	r.silent = errdefs.IsUnavailable(err)
	p, _ := problem.From(explain(s.registry, s.registry.Host+"/"+name, err))
	r.message = p.Message
	return r
}
