package sessioncopy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sync/errgroup"

	"github.com/berthhq/berth/client"
)

// lanes is how many files are copied at once. The server allows eight per user.
const lanes = 4

// item is a file of this machine and its path in the container.
type item struct {
	local, remote string
	info          fs.FileInfo
}

// up copies files of this machine into the container.
func (c *copier) up(ctx context.Context, sources []string, target string) error {
	into, err := c.directory(ctx, target)
	if err != nil {
		return err
	}
	if !into && (len(sources) > 1 || strings.HasSuffix(target, "/")) {
		return fmt.Errorf("%q is not a directory in the session: %w", target, errdefs.ErrFailedPrecondition)
	}
	var dirs []string
	var files []item
	for _, source := range sources {
		to := target
		if into {
			to = path.Join(target, filepath.Base(filepath.Clean(source)))
		}
		d, f, err := c.tree(source, to)
		if err != nil {
			return err
		}
		dirs, files = append(dirs, d...), append(files, f...)
	}
	for _, dir := range dirs {
		if err := c.client.MakeSessionDirectory(ctx, c.at, dir); err != nil && !errdefs.IsAlreadyExists(err) {
			return fmt.Errorf("create %q: %w", dir, err)
		}
	}
	c.progress = c.app.Progress("uploaded")
	defer c.progress.Clear()
	c.progress.Files = len(files)
	for _, f := range files {
		c.progress.Total += f.info.Size()
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(lanes)
	for _, f := range files {
		g.Go(func() error { return c.send(ctx, f) })
	}
	return g.Wait()
}

// directory reports whether a path in the container is a directory.
func (c *copier) directory(ctx context.Context, p string) (bool, error) {
	_, err := c.client.SessionFiles(ctx, c.at, p)
	if errdefs.IsNotFound(err) || errdefs.IsFailedPrecondition(err) && p != "" {
		return false, nil
	}
	return err == nil, err
}

// tree lists the directories and files of a source. Links are followed to files, as scp does; links
// to directories are left out, because they can form cycles.
func (c *copier) tree(source, to string) (dirs []string, files []item, err error) {
	info, err := os.Stat(source)
	if err != nil {
		return nil, nil, err
	}
	if !info.IsDir() {
		return nil, []item{{source, to, info}}, checkFile(source, info)
	}
	if !c.recursive {
		return nil, nil, fmt.Errorf("%s is a directory; add -r: %w", source, errdefs.ErrInvalidArgument)
	}
	root := filepath.Clean(source) + string(filepath.Separator) // a source that is a link is followed
	err = filepath.WalkDir(root, func(local string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(root, local)
		if err != nil {
			return err
		}
		remote := path.Join(to, filepath.ToSlash(below))
		if d.IsDir() {
			dirs = append(dirs, remote)
			return nil
		}
		info, err := os.Stat(local)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			c.app.Note("berth: left out %s: a link that leads nowhere", local)
			return nil
		case err != nil:
			return err
		case info.IsDir():
			c.app.Note("berth: left out %s: a link to a directory", local)
			return nil
		case !info.Mode().IsRegular():
			c.app.Note("berth: left out %s: neither a file nor a directory", local)
			return nil
		}
		files = append(files, item{local, remote, info})
		return nil
	})
	return dirs, files, err
}

func checkFile(name string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return fmt.Errorf("%s is neither a file nor a directory: %w", name, errdefs.ErrInvalidArgument)
}

// send copies one file.
func (c *copier) send(ctx context.Context, i item) error {
	f, err := os.Open(i.local)
	if err != nil {
		return err
	}
	defer f.Close()
	var modified time.Time
	if c.times {
		modified = i.info.ModTime()
	}
	u := &client.SessionUpload{
		ContainerRef: c.at, Path: i.remote, File: f, Size: i.info.Size(), Mode: uint32(i.info.Mode().Perm()), Modified: modified,
		Progress: c.progress.File(i.local), Warn: c.waiting,
	}
	if err := u.Send(ctx, c.client); err != nil {
		return fmt.Errorf("copy %s: %w", i.local, err)
	}
	c.progress.Done()
	return nil
}

func (c *copier) waiting(err error) { c.app.Note("berth: %v; trying again", err) }
