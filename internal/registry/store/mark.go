package store

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
)

// revision is a manifest of a repository during a sweep.
type revision struct {
	*Manifest
	at   time.Time     // when it was pushed, tagged, or lost its tag
	of   digest.Digest // what it describes: a subject, or the digest in a tag of cosign; "" = itself
	tags int
	live bool
}

// marks are the objects of a repository that a sweep keeps.
type marks struct {
	manifests map[digest.Digest]*revision
	blobs     map[digest.Digest]bool
	unclear   int // manifests that cannot be read: nothing of the repository is removed
}

// mark decides what of a repository stays.
func (s *Store) mark(repository string, o Options, began time.Time) (*marks, error) {
	m := &marks{manifests: map[digest.Digest]*revision{}, blobs: map[digest.Digest]bool{}}
	err := s.links(repository, revisions, func(d digest.Digest, _ string, at time.Time) error {
		man, err := s.Manifest(repository, d)
		switch {
		case errdefs.IsNotFound(err): // a link without content, as after a lost disk
			man = &Manifest{Digest: d}
		case err != nil:
			m.unclear++
			return nil
		}
		m.manifests[d] = &revision{Manifest: man, at: at}
		if man.Subject != nil {
			m.manifests[d].of = man.Subject.Digest
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list manifests of %s: %w", repository, err)
	}
	tags, err := s.tags(repository)
	if err != nil {
		return nil, err
	}
	for name, d := range tags {
		r := m.manifests[d]
		switch of, err := TaggedSubject(name); {
		case r == nil:
		case err == nil:
			r.of = of
		default:
			r.tags++
		}
	}
	m.choose(repository, o, began)
	m.follow()
	for _, r := range m.manifests {
		if !r.live {
			continue
		}
		for _, d := range r.blobs() {
			m.blobs[d.Digest] = true
		}
	}
	return m, nil
}

var subjectTag = regexp.MustCompile(`^(sha256|sha512)-([0-9a-f]+)(\.[a-z]+)?$`)

// TaggedSubject returns the digest in a tag by which clients attach signatures and the like to an image,
// such as sha256-….sig.
func TaggedSubject(tag string) (digest.Digest, error) {
	parts := subjectTag.FindStringSubmatch(tag)
	if parts == nil {
		return "", errdefs.ErrNotFound
	}
	return ParseDigest(parts[1] + ":" + parts[2])
}

// choose marks the manifests that stay by themselves.
func (m *marks) choose(repository string, o Options, began time.Time) {
	var untagged []*revision
	for d, r := range m.manifests {
		switch {
		case r.tags > 0, o.Keep[repository+"@"+d.String()], r.at.After(began.Add(-max(o.Grace, 0))):
			r.live = true
		case m.manifests[r.of] == nil:
			untagged = append(untagged, r)
		}
	}
	slices.SortFunc(untagged, func(a, b *revision) int { return b.at.Compare(a.at) })
	rule := o.rule(repository)
	for i, r := range untagged {
		r.live = r.at.After(began.Add(-rule.Untagged)) && (rule.Versions == nil || i < *rule.Versions)
	}
}

// follow marks the parts of live indexes, and what refers to live manifests.
func (m *marks) follow() {
	for changed := true; changed; {
		changed = false
		set := func(r *revision) {
			if r != nil && !r.live {
				r.live, changed = true, true
			}
		}
		for _, r := range m.manifests {
			if r.live {
				for _, d := range r.Manifests {
					set(m.manifests[d.Digest])
				}
			}
			if of := m.manifests[r.of]; of != nil && of.live {
				set(r)
			}
		}
	}
}

// links calls f for the links of a kind that a repository has.
func (s *Store) links(repository, kind string, f func(d digest.Digest, path string, at time.Time) error) error {
	root := s.repository(repository, kind)
	return filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return ignoreMissing(err)
		}
		if e.IsDir() || e.Name() != "link" {
			return nil
		}
		d, err := linkedDigest(root, path)
		if err != nil {
			return nil // not a link of ours
		}
		info, err := e.Info()
		if err != nil {
			return ignoreMissing(err)
		}
		return f(d, path, info.ModTime())
	})
}

// linkedDigest returns the digest of the path of a link.
func linkedDigest(root, path string) (digest.Digest, error) {
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return "", err
	}
	parts := strings.Split(filepath.ToSlash(rel), "/")
	if len(parts) != 3 {
		return "", errdefs.ErrInvalidArgument
	}
	return ParseDigest(parts[0] + ":" + parts[1])
}

// contents calls f for everything that the blob store has.
func (s *Store) contents(ctx context.Context, f func(d digest.Digest, info fs.FileInfo) error) error {
	root := filepath.Join(s.root, "blobs")
	return filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err != nil {
			return ignoreMissing(err)
		}
		if e.IsDir() || e.Name() != "data" {
			return nil
		}
		parts := strings.Split(filepath.ToSlash(strings.TrimPrefix(path, root)), "/") // "", sha256, ab, ab…, data
		if len(parts) != 5 {
			return nil
		}
		d, err := ParseDigest(parts[1] + ":" + parts[3])
		if err != nil {
			return nil
		}
		info, err := os.Stat(path)
		if err != nil {
			return ignoreMissing(err)
		}
		return f(d, info)
	})
}
