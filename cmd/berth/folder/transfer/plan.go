package transfer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/cmd/berth/cli"
)

// partPrefix begins the names of incomplete files.
const partPrefix = ".berth-part-"

// plan lists the files and directories that sources become in a folder.
type plan struct {
	app   *cli.App
	steps []*step // each directory before its entries
	from  map[string]string
	// skipped has the paths in the folder of sources that are not uploaded: links, special files
	// and unreadable files. failed counts the unreadable ones.
	skipped map[string]bool
	failed  []*step
}

// planned lists the files that the sources are uploaded to in a directory of a folder.
func planned(a *cli.App, sources []string, dir string) (*plan, error) {
	p := &plan{app: a, from: map[string]string{}, skipped: map[string]bool{}}
	for _, source := range sources {
		if err := p.add(source, dir); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("%s does not exist here: %w", source, errdefs.ErrNotFound)
			}
			return nil, err
		}
	}
	return p, nil
}

func (p *plan) add(source, dir string) error {
	name := filepath.Base(source)
	if strings.HasSuffix(source, "/.") || source == "." || name == ".." {
		name = ""
	}
	return filepath.WalkDir(source, func(file string, d fs.DirEntry, err error) error {
		rel, rerr := filepath.Rel(source, file)
		if rerr != nil {
			return rerr
		}
		s := &step{Action: upload, Path: strings.TrimPrefix(path.Join("/", dir, name, filepath.ToSlash(rel)), "/"), Local: file}
		if err == nil {
			err = p.look(s, file == source)
		}
		switch {
		case err == nil && s.Action != leave:
			return p.keep(s)
		case err == nil:
			p.skipped[s.Path] = true
			return nil
		case file == source:
			return err
		}
		p.skipped[s.Path] = true
		s.Error = err.Error()
		p.failed = append(p.failed, s)
		if d != nil && d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
}

// look finds out the type of a path. It follows a link only if the user named the link itself.
func (p *plan) look(s *step, named bool) error {
	stat := os.Lstat
	if named {
		stat = os.Stat
	}
	info, err := stat(s.Local)
	if err != nil {
		return err
	}
	s.Size, s.modified = info.Size(), info.ModTime()
	switch {
	case info.IsDir():
		s.Action, s.Size = makeDir, 0
	case info.Mode().IsRegular() && !strings.HasPrefix(info.Name(), partPrefix):
	case named:
		return fmt.Errorf("%s is neither a file nor a directory: %w", s.Local, errdefs.ErrInvalidArgument)
	case info.Mode().IsRegular(): // left by a killed download
		s.Action = leave
	default:
		s.Action = leave
		p.app.Note("berth: left out %s: %s", s.Local, kindOf(info.Mode()))
	}
	return nil
}

func kindOf(m fs.FileMode) string {
	if m&fs.ModeSymlink != 0 {
		return "a link"
	}
	return "neither a file nor a directory"
}

func (p *plan) keep(s *step) error {
	if before, twice := p.from[s.Path]; twice && s.Action != makeDir {
		return cli.Usagef("%s and %s would both become %s", before, s.Local, s.Path)
	}
	p.from[s.Path] = s.Local
	if s.Path != "" {
		p.steps = append(p.steps, s)
	}
	return nil
}
