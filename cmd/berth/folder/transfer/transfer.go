// Package transfer has the commands that copy files between a folder and this
// machine: put, get and sync.
package transfer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// The kinds of steps.
const (
	makeDir  = "mkdir"
	upload   = "upload"
	download = "download"
	remove   = "delete"
	leave    = "leave" // an entry that blocks the copy: a failure from the start
)

// step is the transfer of one file or directory, and its result.
type step struct {
	Action string `json:"action"`
	Path   string `json:"path"` // in the folder
	Local  string `json:"local"`
	Size   int64  `json:"size"`
	Error  string `json:"error,omitempty"`

	below    string // the local path below a transfer's root
	modified time.Time
}

// transferFlags are the flags of all commands that transfer files.
type transferFlags struct {
	parallel int
	verbose  bool
}

func (f *transferFlags) add(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.parallel, "parallel", 4, "files at the same time, up to 32")
	cmd.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "a line for each file")
}

// addRecursive adds the flag -r, which is accepted out of habit: directories are always transferred
// with their contents.
func addRecursive(cmd *cobra.Command) {
	cmd.Flags().BoolP("recursive", "r", true, "directories with all that is in them; it is always so")
}

func (f *transferFlags) check() error {
	if f.parallel < 1 || f.parallel > 32 {
		return cli.Usagef("--parallel %d: choose 1 to 32", f.parallel)
	}
	return nil
}

// transfer copies files between this machine and one folder. A file that fails does not stop the
// others.
type transfer struct {
	transferFlags
	app    *cli.App
	client *client.Client
	folder *client.Folder
	bar    *cli.Progress
	root   *os.Root // downloaded files stay below it

	mu     sync.Mutex
	done   []*step
	failed int
	cause  error // why the first one failed
}

// total sets the expected total of the progress.
func (t *transfer) total(steps []*step) {
	for _, s := range steps {
		if s.Action == upload || s.Action == download {
			t.bar.Files++
			t.bar.Total += s.Size
		}
	}
}

// each runs the steps concurrently, and stops if the rest would fail too.
func (t *transfer) each(ctx context.Context, steps []*step, do func(context.Context, int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(t.parallel)
	for i, s := range steps {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			err := do(ctx, i)
			if stops(ctx, err) {
				return err
			}
			t.ended(s, err)
			return nil
		})
	}
	return g.Wait()
}

// stops reports whether the error of one file would also fail all others.
func stops(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || errdefs.IsUnavailable(err) || errdefs.IsUnauthorized(err))
}

// ended records the result of a step.
func (t *transfer) ended(s *step, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done = append(t.done, s)
	if s.Action == upload || s.Action == download {
		t.bar.Done()
	}
	switch {
	case err != nil:
		s.Error = cli.OneLine(err)
		t.failed++
		if t.cause == nil {
			t.cause = err
		}
		t.bar.Clear()
		t.app.Note("berth: %s: %s", s.named(), s.Error)
	case t.verbose:
		t.bar.Clear()
		t.app.Note("%s %s", s.Action, s.named())
	}
}

// named returns the path on the side that the step is about.
func (s *step) named() string {
	if s.Path == "" || s.Action == upload {
		return s.Local
	}
	return s.Path
}

// finish prints a summary, and returns an error if a part failed.
func (t *transfer) finish(summary string) error {
	t.bar.Clear()
	if t.done == nil {
		t.done = []*step{}
	}
	err := t.app.Printer().Print(t.done, func() error {
		files, bytes := 0, int64(0)
		for _, s := range t.done {
			if s.Error == "" && (s.Action == upload || s.Action == download) {
				files++
				bytes += s.Size
			}
		}
		t.app.Note("%s: %s, %s%s", t.folder.Name, cli.Plural(files, "file"), output.Bytes(bytes), summary)
		return nil
	})
	if err == nil && t.failed > 0 {
		err = fmt.Errorf("%s failed, the first because: %w", cli.Plural(t.failed, "path"), t.cause)
	}
	return err
}

// FileError returns the error of one of several paths, or nil.
func FileError(r client.FileResult) error {
	if r.Error == nil {
		return nil
	}
	return errors.New(*r.Error)
}
