package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"os"
	"path"
	"path/filepath"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
)

// alike finds the files with equal contents on both sides. An unreadable file counts as different,
// and then fails when it is copied.
func (s *syncing) alike(ctx context.Context, here, there tree) (map[string]bool, error) {
	var mu sync.Mutex
	found := map[string]bool{}
	bar := s.app.Progress("compare")
	defer bar.Clear()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(s.parallel)
	var pairs []string
	for _, p := range here.paths() {
		if here[p].kind == "file" && there[p].kind == "file" && here[p].size == there[p].size {
			pairs = append(pairs, p)
			bar.Total += here[p].size
		}
	}
	bar.Files = len(pairs)
	for _, p := range pairs {
		g.Go(func() error {
			equal, err := s.equal(ctx, p, bar)
			bar.Done()
			if stops(ctx, err) {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			found[p] = err == nil && equal
			return nil
		})
	}
	return found, g.Wait()
}

func (s *syncing) equal(ctx context.Context, p string, bar *cli.Progress) (bool, error) {
	f, err := os.Open(filepath.Join(s.dir, p))
	if err != nil {
		return false, err
	}
	defer f.Close()
	mine, other := sha256.New(), sha256.New()
	if _, err := io.Copy(mine, f); err != nil {
		return false, err
	}
	count := bar.File(p)
	d := client.Download{
		Folder: s.folder.ID, Path: path.Join(s.at, p), Warn: s.paused,
		Progress: func(done, _ int64) { count(done) },
	}
	if err := d.CopyTo(ctx, s.client, other); err != nil {
		return false, err
	}
	return bytes.Equal(mine.Sum(nil), other.Sum(nil)), nil
}
