package image

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	entimage "github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/registry/attachment"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

// Limits of what is read for people who look at an image.
const (
	documentTime = 20 * time.Second
	documentLife = 5 * time.Minute
	maxDocuments = 16 // images whose documents are kept
	readers      = 2  // registries that are read at the same time
)

// documents keeps what was read, so that the views of one image cost its registry one answer.
type documents struct {
	mu      sync.Mutex
	entries map[string]*documentEntry
	slots   chan struct{}
}

type documentEntry struct {
	ready chan struct{} // closed when list and err are set
	at    time.Time
	list  []attachment.Attachment
	err   error
}

// get returns what read returns for a key, from at most documentLife ago. Callers at the same time share
// one read, which does not end with any of them.
func (d *documents) get(ctx context.Context, key string, read func(context.Context) ([]attachment.Attachment, error)) ([]attachment.Attachment, error) {
	d.mu.Lock()
	if d.entries == nil {
		d.entries, d.slots = map[string]*documentEntry{}, make(chan struct{}, readers)
	}
	now := time.Now()
	e := d.entries[key]
	if e == nil || now.Sub(e.at) > documentLife {
		e = &documentEntry{ready: make(chan struct{}), at: now}
		d.forget()
		d.entries[key] = e
		go d.read(context.WithoutCancel(ctx), key, e, read)
	}
	d.mu.Unlock()
	select {
	case <-e.ready:
		return e.list, e.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// forget makes room for one entry. Callers have the lock.
func (d *documents) forget() {
	for len(d.entries) >= maxDocuments {
		oldest := ""
		for k, e := range d.entries {
			if oldest == "" || e.at.Before(d.entries[oldest].at) {
				oldest = k
			}
		}
		delete(d.entries, oldest)
	}
}

func (d *documents) read(ctx context.Context, key string, e *documentEntry, read func(context.Context) ([]attachment.Attachment, error)) {
	ctx, cancel := context.WithTimeoutCause(ctx, documentTime, errSlow)
	defer cancel()
	select {
	case d.slots <- struct{}{}:
		e.list, e.err = read(ctx)
		<-d.slots
	case <-ctx.Done():
		e.err = context.Cause(ctx)
	}
	if e.err != nil && ctx.Err() != nil {
		e.err = context.Cause(ctx)
	}
	if e.err != nil { // the next caller tries again
		d.mu.Lock()
		if d.entries[key] == e {
			delete(d.entries, key)
		}
		d.mu.Unlock()
	}
	close(e.ready)
}

var errSlow = errors.New("the registry did not answer in time")

// Attachments returns the documents that the registry of an image has attached to its content. They are
// read now, and nothing of them is stored.
func (s *Service) Attachments(ctx context.Context, id uuid.UUID) ([]*ImageAttachment, error) {
	i, err := s.client.Image.Query().Where(entimage.ID(id), Listed(ctx)).Only(ctx)
	if err != nil {
		return nil, permit.Missing(err, "image", "image")
	}
	if i.RegistryID == nil {
		return nil, problem.Precondition("the registry of image %s was removed", i.Name)
	}
	r, err := s.client.Registry.Get(viewer.SystemContext(ctx), *i.RegistryID)
	if err != nil {
		return nil, fmt.Errorf("read registry: %w", err)
	}
	repository := repositoryOf(i.Name)
	list, err := s.documents.get(ctx, r.ID.String()+" "+repository+"@"+i.Digest, func(ctx context.Context) ([]attachment.Attachment, error) {
		from, err := s.reach(r)
		if err != nil {
			return nil, err
		}
		defer from.Close()
		return attachment.List(ctx, from, repository, i.Digest)
	})
	if errors.Is(err, errSlow) {
		return nil, problem.Unavailable("registry %s did not answer within %s", r.Name, documentTime).Because(err)
	}
	if err != nil {
		return nil, explain(r, "what is attached to image "+i.Name, err)
	}
	out := make([]*ImageAttachment, len(list))
	for n := range list {
		out[n] = &ImageAttachment{list[n]}
	}
	return out, nil
}

// ImageAttachment is a document that is attached to an image.
type ImageAttachment struct{ attachment.Attachment }

// SeverityCount is the number of vulnerabilities of a severity.
type SeverityCount struct {
	Severity string
	Count    int
}

// SizeBytes is the size of the document.
func (a *ImageAttachment) SizeBytes() int64 { return a.Size }

// PackageCount is the number of packages of an SBOM.
func (a *ImageAttachment) PackageCount() int { return len(a.Attachment.Packages) }

// Severities returns the numbers of vulnerabilities, the worst first.
func (a *ImageAttachment) Severities() []*SeverityCount {
	out := []*SeverityCount{}
	for _, s := range []string{"CRITICAL", "HIGH", "MEDIUM", "LOW", "UNKNOWN"} {
		if n := a.Severity[s]; n > 0 {
			out = append(out, &SeverityCount{s, n})
		}
	}
	return out
}

// maxFound limits the packages of one answer.
const maxFound = 500

// Packages returns the packages whose name or version contains a text, at most first of them.
func (a *ImageAttachment) Packages(search *string, limit *int) ([]*attachment.Package, error) {
	text, most := "", 100
	if search != nil {
		text = strings.ToLower(*search)
	}
	if limit != nil {
		most = *limit
	}
	if most < 0 || most > maxFound {
		return nil, problem.Invalid("limit", "%d is not between 0 and %d", most, maxFound).WithLimit(fmt.Sprint(maxFound))
	}
	out := []*attachment.Package{}
	for n := range a.Attachment.Packages {
		if len(out) == most {
			break
		}
		p := &a.Attachment.Packages[n]
		if strings.Contains(strings.ToLower(p.Name+" "+p.Version), text) {
			out = append(out, p)
		}
	}
	return out, nil
}
