package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	"github.com/berthhq/berth/plugins/volume/driver/rest"
)

// tryTrash determines whether the cluster supports the deletion of folders, by deleting one that
// does not exist.
func (v *view) tryTrash(ctx context.Context) error {
	if !v.options.Trash {
		v.trash = "the option trash is false"
		return nil
	}
	err := v.discard(ctx, driver.Own+"/"+unique())
	switch {
	case err == nil || strings.Contains(err.Error(), "no such directory"):
		return nil
	case !lacking(ctx, err):
		return err
	}
	v.trash = status.Convert(driver.Error("", err)).Message()
	return nil
}

func unique() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return ".berth-deleted-" + hex.EncodeToString(b[:])
}

// discard moves a folder to the cluster's trash.
func (v *view) discard(ctx context.Context, tree string) error {
	body := map[string]any{"path": v.inside(tree), "tenant_id": v.tenant}
	_, err := v.client.Do(ctx, rest.Request{Method: http.MethodDelete, Path: base + "/folders/delete_folder/", Body: body})
	return err
}

// trashTime limits the wait until the cluster no longer shows a deleted folder.
const trashTime = 30 * time.Second

// DeleteTree implements driver.Deleter. It first moves the folder to the top of its scope, because
// the cluster resolves a path, and only there can no user create a symbolic link in its place.
// Trees that the cluster does not delete are removed here.
func (v *view) DeleteTree(ctx context.Context, tree string, _ driver.Progress) error {
	scope, _, _ := strings.Cut(tree, "/")
	moved, err := v.aside(scope, tree)
	if errors.Is(err, unix.EXDEV) {
		return v.RemoveTree(ctx, tree)
	}
	if moved == "" || err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, trashTime)
	defer cancel()
	err = v.discard(short, moved)
	if err == nil {
		err = rest.Poll(short, moved+" to go", 20*time.Millisecond, func(context.Context) (bool, error) { return v.gone(moved) })
	}
	if err != nil && ctx.Err() == nil {
		return v.RemoveTree(ctx, moved)
	}
	return err
}

// aside moves a folder to the top of its scope. If the tree is not a folder, it removes it and
// returns "".
func (v *view) aside(scope, tree string) (moved string, err error) {
	top, err := v.OpenTree(scope)
	if err != nil {
		return "", err
	}
	defer top.Close()
	parent, err := v.OpenTree(path.Dir(tree))
	if err != nil {
		return "", err
	}
	defer parent.Close()
	var st unix.Stat_t
	err = unix.Fstatat(int(parent.Fd()), path.Base(tree), &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, unix.ENOENT):
		return "", nil
	case err != nil:
		return "", driver.Error("delete tree", err)
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return "", driver.Error("delete tree", ignoreAbsent(unix.Unlinkat(int(parent.Fd()), path.Base(tree), 0)))
	}
	name := unique()
	err = unix.Renameat2(int(parent.Fd()), path.Base(tree), int(top.Fd()), name, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) { // NFS lacks this flag, and no other process uses the name
		err = unix.Renameat(int(parent.Fd()), path.Base(tree), int(top.Fd()), name)
	}
	if err != nil {
		return "", driver.Error("delete tree", ignoreAbsent(err))
	}
	return scope + "/" + name, nil
}

func ignoreAbsent(err error) error {
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

func (v *view) gone(tree string) (bool, error) {
	d, err := v.OpenTree(path.Dir(tree))
	if err != nil {
		return false, err
	}
	defer d.Close()
	err = unix.Faccessat(int(d.Fd()), path.Base(tree), unix.F_OK, unix.AT_SYMLINK_NOFOLLOW)
	return errors.Is(err, os.ErrNotExist), nil
}
