package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// limitsDir keeps the limits of scopes, beside them and out of every user's
// reach: containers mount folders inside a scope.
const limitsDir = ".berth/scope"

// directory is one open volume.
type directory struct {
	path   string
	dev    uint64
	ino    uint64
	maxAge time.Duration

	scopes sync.Mutex // creating, changing and removing scopes, one at a time

	ctx    context.Context // of the walks
	cancel context.CancelFunc
	walks  sync.WaitGroup
	mu     sync.Mutex
	usage  map[string]*usage
}

func openDirectory(at string, maxAge time.Duration) (*directory, error) {
	var st unix.Stat_t
	if err := unix.Stat(at, &st); err != nil {
		return nil, failure("mount_path", err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return nil, status.Errorf(codes.InvalidArgument, "mount_path %s is not a directory", at)
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &directory{
		path: at, dev: uint64(st.Dev), ino: st.Ino, maxAge: maxAge,
		ctx: ctx, cancel: cancel, usage: make(map[string]*usage),
	}, nil
}

func (d *directory) close() {
	d.mu.Lock()
	d.cancel() // under the lock: no walk starts after it
	d.mu.Unlock()
	d.walks.Wait()
}

// mounted checks that the path still leads to the directory that Open saw and
// not to the bare mount point below it.
func (d *directory) mounted() error {
	var st unix.Stat_t
	if err := unix.Stat(d.path, &st); err != nil {
		return failure("volume", err)
	}
	if uint64(st.Dev) != d.dev || st.Ino != d.ino {
		return status.Errorf(codes.FailedPrecondition, "%s is no longer the directory that was opened", d.path)
	}
	return nil
}

// root opens the volume for one call: a root held for longer would keep the
// file system from being unmounted.
func (d *directory) root() (*os.Root, error) {
	if err := d.mounted(); err != nil {
		return nil, err
	}
	r, err := os.OpenRoot(d.path)
	if err != nil {
		return nil, failure("volume", err)
	}
	return r, nil
}

// limits is what a scope's file holds; absent = no limit.
type limits struct {
	Bytes *int64 `json:"bytes,omitempty"`
}

func readLimits(r *os.Root, scope string) (limits, error) {
	var l limits
	raw, err := r.ReadFile(path.Join(limitsDir, scope))
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return l, failure("read limit", err)
	}
	if err := json.Unmarshal(raw, &l); err != nil {
		return l, status.Errorf(codes.DataLoss, "limit of scope %s: %v", scope, err)
	}
	return l, nil
}

func writeLimits(r *os.Root, scope string, l limits) error {
	raw, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if err := r.MkdirAll(limitsDir, 0o700); err != nil {
		return failure("write limit", err)
	}
	name := path.Join(limitsDir, scope)
	if err := writeSynced(r, name+".new", raw); err != nil {
		return failure("write limit", err)
	}
	if err := r.Rename(name+".new", name); err != nil {
		return failure("write limit", err)
	}
	return nil
}

func writeSynced(r *os.Root, name string, raw []byte) error {
	f, err := r.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	return errors.Join(err, f.Sync(), f.Close())
}
