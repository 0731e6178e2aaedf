package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/net/webdav"
)

const (
	// longestLock is the longest duration of a client's lock; longer requests are shortened.
	// longestRequest is how long a request can hold a lock that it took itself.
	longestLock    = time.Hour
	longestRequest = 24 * time.Hour
	maxLocks       = 1000 // of one folder
	// lockTimeout is how long a request waits for other writers of the same file.
	lockTimeout = time.Minute
	lockMark    = "berth-lock:"
)

// locks are the WebDAV locks of all folders, in memory. Users who see a folder under different
// names share its locks.
type locks struct {
	mu      sync.Mutex
	folders map[string]*folderLocks // by folder id
}

type folderLocks struct {
	webdav.LockSystem
	till  map[string]time.Time          // token → expiry
	held  map[string]webdav.LockDetails // token → lock of a client
	freed chan struct{}                 // closed when a lock is released, then replaced
}

// client reports whether a client's lock covers a name.
func (f *folderLocks) client(name string) bool {
	for token, d := range f.held {
		if _, there := f.till[token]; !there {
			delete(f.held, token)
			continue
		}
		if d.Root == name || !d.ZeroDepth && strings.HasPrefix(name, strings.TrimSuffix(d.Root, "/")+"/") {
			return true
		}
	}
	return false
}

// gone releases a lock and wakes the waiting requests.
func (f *folderLocks) gone(token string) {
	delete(f.till, token)
	delete(f.held, token)
	close(f.freed)
	f.freed = make(chan struct{})
}

// folder returns the locks of a folder after it has removed the expired ones.
func (l *locks) folder(id string, now time.Time) *folderLocks {
	if l.folders == nil {
		l.folders = map[string]*folderLocks{}
	}
	for other, f := range l.folders {
		for token, till := range f.till {
			if now.After(till) {
				delete(f.till, token)
			}
		}
		if len(f.till) == 0 && other != id {
			delete(l.folders, other)
		}
	}
	f := l.folders[id]
	if f == nil {
		f = &folderLocks{
			LockSystem: webdav.NewMemLS(), till: map[string]time.Time{},
			held: map[string]webdav.LockDetails{}, freed: make(chan struct{}),
		}
		l.folders[id] = f
	}
	return f
}

// lockSystem implements webdav.LockSystem for one request.
type lockSystem struct {
	ctx context.Context
	t   *tree
	r   *request
}

// at returns the folder of a name, and the path in the folder.
func (s lockSystem) at(name string) (*open, string, error) {
	at, err := s.t.inside(s.ctx, name, true)
	if err != nil {
		return nil, "", s.r.refuse(err)
	}
	return at.folder, "/" + at.path, nil
}

func (s lockSystem) Create(now time.Time, d webdav.LockDetails) (string, error) {
	o, root, err := s.at(d.Root)
	if err != nil {
		return "", err
	}
	own := d.Duration < 0 // a lock of the request itself, not of a client
	if d.Root = root; own || d.Duration > longestRequest {
		d.Duration = longestRequest
	}
	timer := time.NewTimer(lockTimeout)
	defer timer.Stop()
	for {
		token, wait, err := s.create(o.ref.Folder, d, own)
		if err != nil || wait == nil {
			return token, err
		}
		select {
		case <-wait:
		case <-timer.C:
			return "", webdav.ErrLocked
		case <-s.ctx.Done():
			return "", s.r.refuse(s.ctx.Err())
		}
	}
}

// create creates a lock. If other requests write to the file and no client has locked it, it
// returns a channel to wait on.
func (s lockSystem) create(folder string, d webdav.LockDetails, own bool) (token string, wait <-chan struct{}, err error) {
	now := time.Now()
	l := &s.t.views.locks
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.folder(folder, now)
	if len(f.till) >= maxLocks {
		return "", nil, webdav.ErrLocked
	}
	token, err = f.Create(now, d)
	// A request that holds a lock does not wait for another one: two such requests could wait
	// for each other.
	if errors.Is(err, webdav.ErrLocked) && own && !s.r.locked && !f.client(d.Root) {
		return "", f.freed, nil
	}
	if err != nil {
		return "", nil, err
	}
	f.till[token] = now.Add(d.Duration)
	if own {
		s.r.locked = true
	} else {
		f.held[token] = d
	}
	return lockMark + folder + ":" + token, nil, nil
}

// unchanged checks the entity tags of an If header, which package webdav ignores.
func (s lockSystem) unchanged(name string, conditions []webdav.Condition) bool {
	for _, c := range conditions {
		if c.ETag == "" {
			continue
		}
		tag := ""
		if i, err := s.t.stat(s.ctx, name); err == nil {
			tag, _ = i.ETag(s.ctx)
		}
		if (tag == c.ETag) == c.Not {
			return false
		}
	}
	return true
}

func (s lockSystem) Confirm(now time.Time, name0, name1 string, conditions ...webdav.Condition) (func(), error) {
	if !s.unchanged(cmp.Or(name0, name1), conditions) {
		return nil, webdav.ErrConfirmationFailed
	}
	release := func() {}
	l := &s.t.views.locks
	type want struct{ id, a, b string }
	var wants []want
	for i, name := range []string{name0, name1} {
		if name == "" {
			continue
		}
		o, path, err := s.at(name)
		if err != nil {
			return nil, err
		}
		if i == 1 && len(wants) == 1 && wants[0].id == o.ref.Folder {
			wants[0].b = path
			continue
		}
		wants = append(wants, want{o.ref.Folder, path, ""})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range wants {
		own := make([]webdav.Condition, len(conditions))
		for i, c := range conditions {
			c.Token = strings.TrimPrefix(c.Token, lockMark+w.id+":")
			own[i] = c
		}
		free, err := l.folder(w.id, now).Confirm(now, w.a, w.b, own...)
		if err != nil {
			release()
			return nil, err
		}
		before := release
		release = func() { before(); free() }
	}
	return release, nil
}

func (s lockSystem) Refresh(now time.Time, token string, d time.Duration) (webdav.LockDetails, error) {
	o, own, err := s.token(token)
	if err != nil {
		return webdav.LockDetails{}, err
	}
	if d < 0 || d > longestLock {
		d = longestLock
	}
	l := &s.t.views.locks
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.folder(o.ref.Folder, now)
	details, err := f.Refresh(now, own, d)
	if err == nil {
		f.till[own] = now.Add(d)
		details.Root = "/" + o.path + details.Root
	}
	return details, err
}

func (s lockSystem) Unlock(now time.Time, token string) error {
	o, own, err := s.token(token)
	if err != nil {
		return err
	}
	l := &s.t.views.locks
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.folder(o.ref.Folder, now)
	if err := f.Unlock(now, own); err != nil {
		return err
	}
	f.gone(own)
	return nil
}

// token returns the folder of a token, which must be writable, and the token without its folder.
func (s lockSystem) token(token string) (*open, string, error) {
	rest, ours := strings.CutPrefix(token, lockMark)
	id, own, whole := strings.Cut(rest, ":")
	if !ours || !whole {
		return nil, "", webdav.ErrNoSuchLock
	}
	a, err := s.t.views.accounts.get(s.ctx, s.t.credentials)
	if err != nil {
		return nil, "", s.r.refuse(err)
	}
	o := a.byID[id]
	if o == nil || o.check(true) != nil {
		return nil, "", fmt.Errorf("lock: %w", s.r.refuse(errdefs.ErrPermissionDenied))
	}
	return o, own, nil
}
