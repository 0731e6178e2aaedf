package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/disk"
)

// Limits of the caches of a machine.
const (
	// DefaultDisk limits the files of the builds of one project: base images, results of steps and
	// files that steps write.
	DefaultDisk = 20 << 30
	// shrunk is the part of the disk, in percent, that may be in use before a build.
	shrunk = 70
	// maxCaches is the number of projects with a cache. The one that was unused for the longest time makes
	// room for another.
	maxCaches = 16
)

// Config configures Builders.
type Config struct {
	Program string // berth-builder
	Runc    string
	Dir     string      // for the caches
	Disks   *disk.Disks // nil: the disk space of caches is not limited
	Disk    int64       // of a project's cache; 0 = DefaultDisk
}

// Builders runs the builders of a machine. Each project has a cache directory with a limit, so the builds
// of a project can neither use nor fill the cache of another one.
type Builders struct {
	cfg Config

	mu   sync.Mutex
	used map[string]int // builds of each project at this time
}

// New returns Builders.
func New(cfg Config) *Builders {
	if cfg.Disk == 0 {
		cfg.Disk = DefaultDisk
	}
	return &Builders{cfg: cfg, used: map[string]int{}}
}

var projectForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// Build builds an image with the cache of a project. The Root, the Runc and the CacheBytes of the request are
// set by Build. A failure of the Dockerfile's steps is an *Error.
func (b *Builders) Build(ctx context.Context, project string, r Request, report func(Event)) (*Result, error) {
	r.Source.Address = ""
	last, err := b.run(ctx, project, r, report)
	return last.Result, err
}

// Fetch fetches the source of a request into the cache of a project. A failure of the repository or its server is an
// *Error.
func (b *Builders) Fetch(ctx context.Context, project string, r Request, report func(Event)) (*Fetched, error) {
	last, err := b.run(ctx, project, r, report)
	return last.Fetched, err
}

func (b *Builders) run(ctx context.Context, project string, r Request, report func(Event)) (last Event, err error) {
	if !projectForm.MatchString(project) {
		return last, fmt.Errorf("project %.80q is malformed: %w", project, errdefs.ErrInvalidArgument)
	}
	release, err := b.open(ctx, project)
	if err != nil {
		return last, fmt.Errorf("open the cache of project %s: %w", project, err)
	}
	defer release()
	r.Root, r.Runc, r.CacheBytes = filepath.Join(b.dir(project), "cache"), b.cfg.Runc, b.cfg.Disk/100*shrunk
	if err := os.MkdirAll(r.Root, 0o700); err != nil {
		return last, err
	}
	last, err = start(ctx, b.cfg.Program, r, report)
	if err == nil && last.Error != nil {
		err = last.Error
	}
	return last, err
}

// Error implements error.
func (e *Error) Error() string {
	if e.Step == "" {
		return e.Message
	}
	return fmt.Sprintf("step %s: %s", e.Step, e.Message)
}

func (b *Builders) dir(project string) string { return filepath.Join(b.cfg.Dir, project) }

// open creates the directory of a project unless it exists, and keeps it until release is called.
func (b *Builders) open(ctx context.Context, project string) (release func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := os.MkdirAll(b.cfg.Dir, 0o700); err != nil {
		return nil, err
	}
	dir := b.dir(project)
	if b.used[project] == 0 {
		if err := b.ensure(ctx, dir); err != nil {
			return nil, err
		}
	}
	now := time.Now()
	if err := os.Chtimes(dir, now, now); err != nil {
		return nil, err
	}
	b.used[project]++
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.used[project]--
	}, b.evict()
}

// ensure makes a directory usable.
func (b *Builders) ensure(ctx context.Context, dir string) error {
	if b.cfg.Disks == nil {
		return os.MkdirAll(dir, 0o700)
	}
	return b.cfg.Disks.Open(ctx, dir, b.cfg.Disk)
}

// Close unmounts the caches, which stay for the next agent. No build may start after it.
func (b *Builders) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	entries, err := os.ReadDir(b.cfg.Dir)
	if b.cfg.Disks == nil || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, b.cfg.Disks.Close(b.dir(e.Name())))
		}
	}
	return err
}

// evict removes the caches that were unused for the longest time. The caller has locked b.mu.
func (b *Builders) evict() error {
	entries, err := os.ReadDir(b.cfg.Dir)
	if err != nil {
		return err
	}
	type cache struct {
		name string
		at   time.Time
	}
	var caches []cache
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && e.IsDir() {
			caches = append(caches, cache{e.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(caches, func(x, y cache) int { return x.at.Compare(y.at) })
	var failed error
	for n := len(caches) - maxCaches; n > 0 && len(caches) > 0; caches = caches[1:] {
		if b.used[caches[0].name] > 0 {
			continue
		}
		failed = errors.Join(failed, b.remove(b.dir(caches[0].name)))
		n--
	}
	return failed
}

func (b *Builders) remove(dir string) error {
	if b.cfg.Disks != nil {
		return b.cfg.Disks.Remove(dir)
	}
	return os.RemoveAll(dir)
}
