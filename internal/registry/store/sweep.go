package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
)

// Rule says how long untagged manifests of some repositories stay.
type Rule struct {
	Prefix   string        `json:"prefix"`             // of repositories; "" = all
	Untagged time.Duration `json:"untagged"`           // since the push, or since the manifest lost its tag
	Versions *int          `json:"versions,omitempty"` // of them, the newest ones; nil = all
}

// Options are the settings of a sweep.
type Options struct {
	Grace   time.Duration   `json:"grace"`   // content that is younger, or was used within this time, stays
	Rules   []Rule          `json:"rules"`   // the longest prefix that matches counts
	Keep    map[string]bool `json:"keep"`    // repository@digest that stay
	Uploads time.Duration   `json:"uploads"` // uploads that no request has written to for this time are removed; at least Grace
	DryRun  bool            `json:"dryRun"`
}

func (o Options) rule(repository string) Rule {
	var found Rule
	for _, r := range o.Rules {
		if strings.HasPrefix(repository+"/", r.Prefix) && len(r.Prefix) >= len(found.Prefix) {
			found = r
		}
	}
	return found
}

// Report is the result of a sweep.
type Report struct {
	DryRun       bool   `json:"dryRun"`
	Repositories int    `json:"repositories"`
	Manifests    int    `json:"manifests"` // removed
	Blobs        int    `json:"blobs"`     // removed
	Uploads      int    `json:"uploads"`   // removed
	FreedBytes   int64  `json:"freedBytes"`
	StoredBytes  int64  `json:"storedBytes"` // what stays
	FreeBytes    int64  `json:"freeBytes"`   // of the disk
	Unclear      int    `json:"unclear"`     // manifests that cannot be read; their repositories were left out
	UnclearIn    string `json:"unclearIn,omitempty"`
}

// ErrSweeping reports that a sweep is running.
var ErrSweeping = fmt.Errorf("a sweep of the registry is running: %w", errdefs.ErrFailedPrecondition)

// Sweep frees what nothing refers to. Requests run meanwhile: before a sweep removes an object, it takes
// the lock and verifies that no request has used the object since the sweep began. Links go before their
// content, so a killed sweep leaves content without links, which the next sweep removes.
func (s *Store) Sweep(ctx context.Context, o Options) (Report, error) {
	if !s.sweeps.TryLock() {
		return Report{}, ErrSweeping
	}
	defer s.sweeps.Unlock()
	began := time.Now()
	s.watch(map[string]bool{})
	defer s.watch(nil)
	w := &sweep{Store: s, Options: o, began: began, report: Report{DryRun: o.DryRun}, removed: map[string]bool{}, linked: map[digest.Digest]bool{}}
	var err error
	if w.report.Uploads, w.report.FreedBytes, err = s.PurgeUploads(ctx, max(o.Uploads, o.Grace), o.DryRun); err != nil {
		return w.report, fmt.Errorf("remove old uploads: %w", err)
	}
	for _, step := range []func(context.Context) error{w.unlink, w.collect, w.free} {
		if err := step(ctx); err != nil {
			return w.report, fmt.Errorf("sweep the registry: %w", err)
		}
	}
	w.report.FreeBytes, _, err = s.space()
	return w.report, err
}

// watch begins and ends the record of what requests use.
func (s *Store) watch(touched map[string]bool) {
	s.mu.Lock() // after all requests that did not record
	defer s.mu.Unlock()
	s.using.Lock()
	defer s.using.Unlock()
	s.touched = touched
}

// sweep is a running sweep.
type sweep struct {
	*Store
	Options
	began   time.Time
	report  Report
	removed map[string]bool        // paths of links
	linked  map[digest.Digest]bool // content with a link
}

// unlink removes the manifests and the links to blobs that their repositories do not need.
func (w *sweep) unlink(ctx context.Context) error {
	return w.Repositories(func(repository string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		w.report.Repositories++
		m, err := w.mark(repository, w.Options, w.began)
		if err != nil {
			return err
		}
		if m.unclear > 0 {
			w.report.Unclear += m.unclear
			w.report.UnclearIn = repository
			return nil
		}
		for d, r := range m.manifests {
			if r.live {
				continue
			}
			if err := w.unlinkManifest(repository, d); err != nil {
				return err
			}
		}
		err = w.links(repository, layers, func(d digest.Digest, path string, at time.Time) error {
			if m.blobs[d] || w.young(at) {
				return nil
			}
			return w.unlinkBlob(d, path)
		})
		if err != nil || w.DryRun {
			return err
		}
		return w.dropEmpty(repository)
	})
}

// errUsed ends the search for what a repository has.
var errUsed = errors.New("the repository is not empty")

// dropEmpty removes a repository without manifests, blobs and uploads, so that it is no longer listed.
func (w *sweep) dropEmpty(repository string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	used := func(digest.Digest, string, time.Time) error { return errUsed }
	for _, kind := range []string{layers, revisions} {
		if err := w.links(repository, kind, used); err != nil {
			return ignoreUsed(err)
		}
	}
	if uploads, err := os.ReadDir(w.repository(repository, "_uploads")); err != nil && !errors.Is(err, fs.ErrNotExist) || len(uploads) > 0 {
		return err
	}
	for _, part := range []string{"_layers", "_manifests", "_uploads", "_referrers"} {
		if err := os.RemoveAll(w.repository(repository, part)); err != nil {
			return err
		}
	}
	// The directory stays while it has other repositories.
	for dir := w.repository(repository); dir != w.repository(""); dir = filepath.Dir(dir) {
		if os.Remove(dir) != nil {
			break
		}
	}
	return nil
}

func ignoreUsed(err error) error {
	if errors.Is(err, errUsed) {
		return nil
	}
	return err
}

// young reports whether content is within the grace time.
func (w *sweep) young(at time.Time) bool { return at.After(w.began.Add(-w.Grace)) }

func (w *sweep) unlinkManifest(repository string, d digest.Digest) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	path := w.link(repository, revisions, d)
	if w.inUse(d) || w.removed[path] {
		return nil
	}
	w.removed[path] = true
	w.report.Manifests++
	if w.DryRun {
		return nil
	}
	if err := w.deleteManifest(repository, d); err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	return nil
}

func (w *sweep) unlinkBlob(d digest.Digest, path string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inUse(d) {
		return nil
	}
	w.removed[path] = true
	if w.DryRun {
		return nil
	}
	if err := removeLink(path); err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	return nil
}

// collect finds the content that has a link.
func (w *sweep) collect(ctx context.Context) error {
	return w.Repositories(func(repository string) error {
		for _, kind := range []string{layers, revisions} {
			err := w.links(repository, kind, func(d digest.Digest, path string, _ time.Time) error {
				if w.removed[path] && !w.inUse(d) {
					return nil
				}
				w.linked[d] = true
				// Distribution links other algorithms to the content of sha256.
				if target, err := readLink(path); err == nil {
					w.linked[target] = true
				}
				return ctx.Err()
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// free removes the content without a link.
func (w *sweep) free(ctx context.Context) error {
	return w.contents(ctx, func(d digest.Digest, info fs.FileInfo) error {
		if w.linked[d] {
			w.report.StoredBytes += info.Size()
			return nil
		}
		freed, err := w.remove(d, info)
		if err != nil {
			return err
		}
		if !freed {
			w.report.StoredBytes += info.Size()
			return nil
		}
		w.report.Blobs++
		w.report.FreedBytes += info.Size()
		return nil
	})
}

// remove removes content unless a request has used it since the sweep began.
func (w *sweep) remove(d digest.Digest, info fs.FileInfo) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inUse(d) || w.young(info.ModTime()) {
		return false, nil
	}
	if w.DryRun {
		return true, nil
	}
	path := w.data(d)
	if err := os.Remove(path); err != nil {
		return false, ignoreMissing(err)
	}
	_ = os.RemoveAll(filepath.Dir(path))
	return true, nil
}
