package main

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/berthhq/berth/internal/client"
	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"
)

func (a *app) folderGet() *cobra.Command {
	var asZip bool
	cmd := &cobra.Command{
		Use:   "get FOLDER[:PATH] [LOCAL]",
		Short: "Download a file, a directory, or a whole folder",
		Long: `Download a file, a directory, or a whole folder. LOCAL is a directory to put it
into, or the new name; - writes to standard output. A file arrives whole or not
at all; when the connection breaks, the download goes on where it was. Links in
directories are left out.`,
		Example:           "  berth folder get data:result.json\n  berth folder get data:runs/7 ./run-7",
		Args:              count(1, 2),
		ValidArgsFunction: a.completeFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, f, file, err := a.inFolder(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			g := &get{app: a, client: c, folder: f, path: file, bar: a.progress("down")}
			defer g.bar.Clear()
			local := "."
			if len(args) > 1 {
				local = args[1]
			}
			return g.run(cmd.Context(), local, asZip)
		},
	}
	cmd.Flags().BoolVar(&asZip, "zip", false, "keep a directory as the zip file it travels in")
	return cmd
}

type get struct {
	app    *app
	client *client.Client
	folder *client.Folder
	path   string
	bar    *progress
}

func (g *get) run(ctx context.Context, local string, asZip bool) error {
	name, dir := g.folder.Name, true
	if g.path != "" {
		info, err := g.client.Stat(ctx, g.folder.ID, g.path)
		if err != nil {
			return err
		}
		name, dir = info.Name, info.Type == "directory"
	}
	if dir && (asZip || local == "-") {
		name += ".zip"
	}
	if local == "-" {
		return g.copy(ctx, g.app.out)
	}
	if info, err := os.Stat(local); err == nil && info.IsDir() {
		local = filepath.Join(local, name)
	}
	var err error
	if dir && !asZip {
		err = g.unpack(ctx, local)
	} else {
		err = g.file(ctx, local)
	}
	if err != nil {
		return err
	}
	g.bar.Clear()
	result := struct {
		Path  string `json:"path"`
		Local string `json:"local"`
	}{path.Join("/", g.path), local}
	return g.app.print().Print(result, func() error {
		_, err := fmt.Fprintln(g.app.out, output.Clean(local))
		return err
	})
}

// copy downloads to w; done counts what has been written.
func (g *get) copy(ctx context.Context, w io.Writer) error {
	name := g.path
	if name == "" {
		name = g.folder.Name
	}
	counter := g.bar.File(name)
	d := client.Download{
		Folder: g.folder.ID, Path: g.path,
		Progress: func(done, total int64) { g.bar.total = max(total, 0); counter(done) },
		Told:     func(err error) { g.bar.Pause(oneLine(err)) },
	}
	return d.CopyTo(ctx, g.client, w)
}

// file downloads beside the file's place and then moves it there.
func (g *get) file(ctx context.Context, local string) error {
	part, err := os.CreateTemp(filepath.Dir(local), "."+filepath.Base(local)+".part-*")
	if err != nil {
		return err
	}
	defer os.Remove(part.Name()) // gone already when all went well
	err = g.copy(ctx, part)
	if err == nil {
		err = part.Chmod(0o666 &^ umask())
	}
	if err = errors.Join(err, part.Close()); err != nil {
		return err
	}
	return os.Rename(part.Name(), local)
}

// unpack downloads a directory as a zip and takes it apart below local.
func (g *get) unpack(ctx context.Context, local string) error {
	tmp, err := os.CreateTemp("", "berth-get-*.zip")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	defer tmp.Close()
	if err := g.copy(ctx, tmp); err != nil {
		return err
	}
	size, err := tmp.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	archive, err := zip.NewReader(tmp, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return fmt.Errorf("read archive: %w", err)
	}
	if err := os.MkdirAll(local, 0o777); err != nil {
		return err
	}
	// Whatever an archive says, nothing is written outside of local.
	root, err := os.OpenRoot(local)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range archive.File {
		if err := unpackOne(root, f); err != nil {
			return fmt.Errorf("unpack %s: %w", f.Name, err)
		}
	}
	return nil
}

func unpackOne(root *os.Root, f *zip.File) error {
	name := strings.TrimSuffix(f.Name, "/")
	if !fs.ValidPath(name) {
		return fmt.Errorf("not a path below the directory: %w", errdefs.ErrInvalidArgument)
	}
	if f.FileInfo().IsDir() {
		return root.MkdirAll(name, 0o777)
	}
	if err := root.MkdirAll(path.Dir(name), 0o777); err != nil {
		return err
	}
	in, err := f.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666|f.Mode()&0o111)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in) // also checks the CRC
	return errors.Join(err, out.Close())
}
