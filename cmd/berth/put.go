package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/berthhq/berth/internal/client"
	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
)

// item is one file or directory to upload.
type item struct {
	local    string
	remote   string
	dir      bool
	size     int64
	modified time.Time
}

func (a *app) folderPut() *cobra.Command {
	var skip bool
	var parallel int
	cmd := &cobra.Command{
		Use:   "put FOLDER[:DIR] SOURCE... [:DIR]",
		Short: "Upload files and directories",
		Long: `Upload files and directories into a folder, or into a directory of it. Every
chunk is checked by its SHA-256. An upload that was cut off, also one by an
earlier run of berth, goes on where it was as long as the file is the same.

A directory keeps its name; DIRECTORY/. uploads what is in it. Links to files
are followed, links to directories and special files are left out.`,
		Example: "  berth folder put data train.py images/\n  berth folder put data:raw *.csv",
		Args:    count(2, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			sources, to := args[1:], parsePlace(args[0])
			if last := sources[len(sources)-1]; strings.HasPrefix(last, ":") {
				if sources = sources[:len(sources)-1]; len(sources) == 0 || to.path != "" {
					return usagef("usage: %s", cmd.UseLine())
				}
				to.path = parsePlace(last).path
			}
			if parallel < 1 || parallel > 32 {
				return usagef("--parallel %d: choose 1 to 32", parallel)
			}
			items, err := a.plan(sources, to.path)
			if err != nil {
				return err
			}
			c, f, _, err := a.inFolder(cmd.Context(), to.folder)
			if err != nil {
				return err
			}
			p := &put{app: a, client: c, folder: f, parallel: parallel, bar: a.progress("up")}
			if skip {
				if items, err = p.missing(cmd.Context(), items); err != nil {
					return err
				}
			}
			return p.run(cmd.Context(), items)
		},
		ValidArgsFunction: a.completeFolder,
	}
	cmd.Flags().BoolVar(&skip, "skip-existing", false, "leave out files that are there in the same size")
	cmd.Flags().IntVar(&parallel, "parallel", 4, "files at the same time")
	return cmd
}

// plan lists what the sources mean, directories before what is in them.
func (a *app) plan(sources []string, dir string) ([]item, error) {
	var items []item
	from := map[string]string{}
	for _, source := range sources {
		name := filepath.Base(source)
		if strings.HasSuffix(source, "/.") || source == "." || name == ".." {
			name = ""
		}
		err := filepath.WalkDir(source, func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(source, p)
			if err != nil {
				return err
			}
			info, err := os.Stat(p)
			if err != nil && d.Type()&fs.ModeSymlink != 0 && p != source {
				a.note("berth: left out %s: the link leads nowhere", p)
				return nil
			}
			if err != nil {
				return err
			}
			it := item{local: p, remote: path.Join(dir, name, filepath.ToSlash(rel)), dir: d.IsDir(), size: info.Size(), modified: info.ModTime()}
			if !info.Mode().IsRegular() && !d.IsDir() {
				if p == source {
					return fmt.Errorf("%s is neither a file nor a directory: %w", p, errdefs.ErrInvalidArgument)
				}
				a.note("berth: left out %s: neither a file nor a directory", p)
				return nil
			}
			if before, twice := from[it.remote]; twice && !it.dir {
				return usagef("%s and %s would both become %s", before, p, it.remote)
			}
			from[it.remote] = p
			if it.remote != "" && it.remote != "." {
				items = append(items, it)
			}
			return nil
		})
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("%s does not exist here: %w", source, errdefs.ErrNotFound)
			}
			return nil, err
		}
	}
	return items, nil
}

// put uploads a plan.
type put struct {
	app      *app
	client   *client.Client
	folder   *client.Folder
	parallel int
	bar      *progress
}

// batch is how many tickets are asked for at once: few enough that none is
// over before its turn.
const batch = 100

// maxPaths is how many paths the server takes at once.
const maxPaths = 1000

func (p *put) run(ctx context.Context, items []item) error {
	files, done, dirs := []item{}, []client.File{}, []string{}
	for _, it := range items {
		if it.dir {
			dirs = append(dirs, it.remote)
			continue
		}
		files = append(files, it)
		p.bar.total += it.size
		done = append(done, client.File{Name: path.Base(it.remote), Path: it.remote, Type: "file", Size: it.size, ModifiedAt: it.modified})
	}
	for some := range slices.Chunk(dirs, maxPaths) {
		results, err := p.client.MakeDirectories(ctx, p.folder.ID, some)
		for _, r := range results {
			if r.Error != nil && err == nil {
				err = fmt.Errorf("%s: %s", r.Path, *r.Error)
			}
		}
		if err != nil {
			return fmt.Errorf("make directories: %w", err)
		}
	}
	p.bar.files = len(files)
	defer p.bar.Clear()
	for start := 0; start < len(files); start += batch {
		if err := p.some(ctx, files[start:min(start+batch, len(files))]); err != nil {
			return err
		}
	}
	p.bar.Clear()
	return p.app.print().Print(done, func() error {
		p.app.note("%s: %d files, %s", p.folder.Name, len(files), output.Bytes(p.bar.total))
		return nil
	})
}

func (p *put) some(ctx context.Context, files []item) error {
	announce := make([]client.UploadFile, len(files))
	for i, f := range files {
		announce[i] = client.UploadFile{Path: f.remote, Size: f.size}
	}
	targets, err := p.client.CreateUpload(ctx, p.folder.ID, announce)
	if err != nil {
		return err
	}
	if len(targets) != len(files) {
		return fmt.Errorf("the server gave %d tickets for %d files: %w", len(targets), len(files), errdefs.ErrInternal)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(p.parallel)
	for i := range files {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error { return p.one(ctx, files[i], targets[i]) })
	}
	return g.Wait()
}

func (p *put) one(ctx context.Context, it item, target client.UploadTarget) error {
	f, err := os.Open(it.local)
	if err != nil {
		return err
	}
	defer f.Close()
	note := p.app.resumeNote(p.client.Base(), p.folder.ID, it)
	counter := p.bar.File(it.remote)
	u := client.Upload{
		Target: target, Source: f, Size: it.size,
		Location: note.Read(), Created: note.Write, Progress: counter,
		Told: func(err error) { p.bar.Pause(oneLine(err)) },
		Renew: func(ctx context.Context) (client.UploadTarget, error) {
			fresh, err := p.client.CreateUpload(ctx, p.folder.ID, []client.UploadFile{{Path: it.remote, Size: it.size}})
			if err != nil || len(fresh) != 1 {
				return client.UploadTarget{}, errors.Join(err, errdefs.ErrInternal)
			}
			return fresh[0], nil
		},
	}
	if err := u.Run(ctx, p.client); err != nil {
		return err
	}
	note.Remove()
	p.bar.Done()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() != it.size || !info.ModTime().Equal(it.modified) {
		return fmt.Errorf("%s changed while it was uploaded; put it again: %w", it.local, errdefs.ErrAborted)
	}
	return nil
}

// missing drops files that are there in the same size.
func (p *put) missing(ctx context.Context, items []item) ([]item, error) {
	listed := map[string]map[string]int64{}
	var rest []item
	for _, it := range items {
		dir := path.Dir(it.remote)
		if dir == "." {
			dir = ""
		}
		if _, ok := listed[dir]; !ok {
			there := map[string]int64{}
			files, err := p.client.Files(ctx, p.folder.ID, dir)
			if err != nil && !errdefs.IsNotFound(err) {
				return nil, err
			}
			for _, f := range files {
				if f.Type == "file" {
					there[f.Name] = f.Size
				}
			}
			listed[dir] = there
		}
		if size, ok := listed[dir][path.Base(it.remote)]; ok && !it.dir && size == it.size {
			continue
		}
		rest = append(rest, it)
	}
	return rest, nil
}
