package commit

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"
)

// The phases of a commit, for progress.
const (
	Copying     = "copying"
	Compressing = "compressing"
)

// Source is a container whose writable layer becomes a layer of an image.
type Source struct {
	Upper  string   // its directory
	Lower  []string // the directories of the image's layers, the uppermost first
	Mounts []string // paths in the container where something is mounted
	// Pause calls a function while all processes of the container are paused. nil: nothing runs.
	Pause func(ctx context.Context, f func() error) error
	// MaxBytes limits the files of the layer before compression; 0: no limit.
	MaxBytes int64
	// Indexed gives the layer an index of its files, as zstd:chunked.
	Indexed bool
}

// Layer is the result. Without changes, it has no Digest.
type Layer struct {
	Path        string // of the compressed file
	Digest      digest.Digest
	DiffID      digest.Digest     // of the archive before compression
	Size        int64             // compressed
	Raw         int64             // bytes of the archive before compression
	Annotations map[string]string // of an index
	Entries     int
	Newest      time.Time     // the newest time of a file
	Paused      time.Duration // how long the container was paused
}

// maker makes one layer.
type maker struct {
	src     Source
	dir     string // for copies
	exclude *exclusion
	lower   lower
	report  func(phase string, done, total int64)

	files               map[inode]*staged
	count               int
	total, taken, bound int64
}

// little is an amount that is copied while the container is paused without a further round before: it
// takes less than a tenth of a second.
const little = 32 << 20

// rounds limits the rounds of copying before the pause.
const rounds = 3

// Make writes the layer into dir, which must exist and be empty. The caller removes it.
func Make(ctx context.Context, src Source, dir string, report func(phase string, done, total int64)) (Layer, error) {
	m := &maker{src: src, dir: dir, exclude: newExclusion(src.Mounts), report: report, files: map[inode]*staged{}}
	var err error
	if m.lower, err = openLower(src.Lower); err != nil {
		return Layer{}, err
	}
	defer m.lower.close()
	if err := m.measure(ctx); err != nil {
		return Layer{}, err
	}
	entries, paused, err := m.snapshot(ctx)
	if err != nil {
		return Layer{}, err
	}
	if entries, err = m.differing(entries); err != nil {
		return Layer{}, err
	}
	l, err := m.write(ctx, entries, filepath.Join(dir, "layer"))
	l.Paused = paused
	return l, err
}

// measure adds up the files and compares them with the limit.
func (m *maker) measure(ctx context.Context) error {
	err := m.walk(ctx, func(_ *os.Root, _ string, e *entry) error {
		if e.kind() == unix.S_IFREG {
			m.total += e.stat.Size
		}
		return nil
	})
	if err != nil {
		return err
	}
	if m.src.MaxBytes > 0 && m.total > m.src.MaxBytes {
		return fmt.Errorf("the changed files have %d bytes, more than the limit of %d: %w", m.total, m.src.MaxBytes, errdefs.ErrFailedPrecondition)
	}
	m.bound = (rounds+1)*m.total + 1<<30
	return nil
}

// snapshot copies the files so that all copies are of one moment: most of them while the container
// runs, and those that changed meanwhile while it is paused.
func (m *maker) snapshot(ctx context.Context) (entries []*entry, paused time.Duration, err error) {
	if m.src.Pause == nil {
		entries, _, err = m.round(ctx)
		return entries, 0, err
	}
	if err := m.flush(); err != nil {
		return nil, 0, err
	}
	for range rounds {
		_, copied, err := m.round(ctx)
		if err != nil {
			return nil, 0, err
		}
		if copied < little {
			break
		}
	}
	begun := time.Now()
	err = m.src.Pause(ctx, func() (err error) {
		entries, _, err = m.round(ctx)
		return err
	})
	return entries, time.Since(begun), err
}

// flush writes the layer's file system back. Afterwards, a write through a memory map changes the
// times of its file again.
func (m *maker) flush() error {
	d, err := os.Open(m.src.Upper)
	if err != nil {
		return fmt.Errorf("open the writable layer: %w", err)
	}
	defer d.Close()
	if err := unix.Syncfs(int(d.Fd())); err != nil {
		return fmt.Errorf("write the writable layer back: %w", err)
	}
	return nil
}

// differing leaves out the entries that do not differ from the image.
func (m *maker) differing(all []*entry) (kept []*entry, err error) {
	for _, e := range all {
		switch {
		case e.path == accounts && e.file != nil:
			differs, err := m.stripAccounts(e)
			if err != nil {
				return nil, err
			}
			if !differs {
				continue
			}
		case e.gone:
			if _, _, there := m.lower.find(e.path); !there {
				continue
			}
		case e.kind() == unix.S_IFDIR && m.lower.same(e):
			continue
		}
		kept = append(kept, e)
	}
	return m.withoutEmpty(kept), nil
}

// withoutEmpty leaves out directories that the image does not have and that lead only to excluded
// paths: a runtime creates them for its mounts.
func (m *maker) withoutEmpty(all []*entry) []*entry {
	leads := map[string]bool{}
	for at := range m.exclude.at {
		for p := parent(at); p != ""; p = parent(p) {
			leads[p] = true
		}
	}
	used := map[string]bool{}
	keep := make([]bool, len(all))
	for i := len(all) - 1; i >= 0; i-- { // contents come after their directory
		e := all[i]
		keep[i] = !leads[e.path] || e.kind() != unix.S_IFDIR || e.opaque || used[e.path]
		if _, _, there := m.lower.find(e.path); there && leads[e.path] {
			keep[i] = true
		}
		if keep[i] {
			used[parent(e.path)] = true
		}
	}
	kept := all[:0]
	for i, e := range all {
		if keep[i] {
			kept = append(kept, e)
		}
	}
	return kept
}

func parent(p string) string {
	if d := filepath.Dir(p); d != "." {
		return d
	}
	return ""
}
