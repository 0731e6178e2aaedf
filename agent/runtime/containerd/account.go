package containerd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/containerd/containerd/v2/core/mount"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// account adds the container's user to /etc/passwd of the writable layer if the image has no user with
// this number: OpenSSH's client, for one, does not start as a user without an entry. An image whose
// file cannot be changed stays as it is.
func (r *Runtime) account(ctx context.Context, root []mount.Mount, user specs.User, home string) {
	err := mount.WithTempMount(ctx, root, func(dir string) error {
		tree, err := os.OpenRoot(dir) // the image's links lead nowhere else
		if err != nil {
			return err
		}
		defer tree.Close()
		return addAccount(tree, user.UID, user.GID, home)
	})
	if err != nil {
		r.cfg.Logger.Warn("user not added to /etc/passwd of a container", "uid", user.UID, "error", err)
	}
}

const passwdFile = "etc/passwd"

// addAccount appends an entry unless there is one for the number. Its name is work, or one with the
// number if another user has that name.
func addAccount(tree *os.Root, uid, gid uint32, home string) error {
	text, err := tree.ReadFile(passwdFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	name := "work"
	for line := range strings.Lines(string(text)) {
		f := strings.Split(line, ":")
		if len(f) > 2 && f[2] == strconv.FormatUint(uint64(uid), 10) {
			return nil
		}
		if f[0] == "work" {
			name = fmt.Sprintf("user%d", uid)
		}
	}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	text = fmt.Appendf(text, "%s:x:%d:%d::%s:/bin/sh\n", name, uid, gid, home)
	if err := tree.MkdirAll("etc", 0o755); err != nil {
		return err
	}
	return tree.WriteFile(passwdFile, text, 0o644)
}
