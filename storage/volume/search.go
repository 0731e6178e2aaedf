package volume

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/folderpath"
)

// searchTime is the duration of one Search.
const searchTime = time.Second

// Search returns the entries below a directory whose names contain a text, ignoring case,
// directories before their contents and each in the order of the names' bytes. It ends after
// searchTime or with a full page, and returns a cursor: the path that it has reached. It finds
// links but does not follow them, and does not enter other mounts.
func (f *Folder) Search(ctx context.Context, path, text string, limit int, cursor string) ([]Entry, string, error) {
	path, err := Clean(path)
	if err != nil {
		return nil, "", err
	}
	if text == "" || len(text) > folderpath.MaxName {
		return nil, "", invalid("text: %d bytes, wants 1 to %d", len(text), folderpath.MaxName)
	}
	after, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return nil, "", invalid("cursor: is not one that a search returned")
	}
	d, err := followDir(f.dir, path, inside)
	if err != nil {
		return nil, "", classify("search", path, err)
	}
	defer d.Close()
	s := &search{ctx: ctx, text: strings.ToLower(text), limit: min(max(limit, 1), MaxPage), end: time.Now().Add(searchTime)}
	if err := s.dir(d, "", string(after), 0); err != nil && !errors.Is(err, errPause) {
		return nil, "", err
	}
	for i := range s.found {
		s.found[i].Path = join(path, s.found[i].Path)
	}
	if s.at == "" {
		return s.found, "", nil
	}
	return s.found, base64.RawURLEncoding.EncodeToString([]byte(s.at)), nil
}

// errPause ends a search that the next call continues.
var errPause = errors.New("pause")

type search struct {
	ctx   context.Context
	text  string // in lower case
	limit int
	end   time.Time
	found []Entry
	seen  int
	size  int    // bytes of the paths found
	at    string // path of the pause; "" = the search is complete
}

// batch is the number of names of a directory in memory. A larger directory is read again for
// each batch.
const batch = 100_000

// dir searches the entries after a path, or all for "". path is the directory's path, relative
// to where the search began.
func (s *search) dir(d *os.File, path, after string, depth int) error {
	if depth > walkDepth {
		return nil
	}
	first, rest, _ := strings.Cut(after, "/")
	if after != "" {
		// The entry at the cursor was already returned, but not all of its contents.
		if err := s.descend(d, first, join(path, first), rest, depth); err != nil {
			return err
		}
	}
	for last, more := first, true; more; {
		var names []entryName
		var err error
		if names, more, err = firstNames(d, batch, last); err != nil {
			return classify("search", path, err)
		}
		for _, n := range names {
			if err := s.visit(d, n, join(path, n.name), depth); err != nil {
				return err
			}
			last = n.name
		}
	}
	return nil
}

// visit checks one entry and searches its contents.
func (s *search) visit(d *os.File, n entryName, path string, depth int) error {
	if strings.Contains(strings.ToLower(n.name), s.text) {
		var st unix.Stat_t
		err := unix.Fstatat(int(d.Fd()), n.name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err == nil {
			s.found = append(s.found, entry(path, &st))
			s.size += len(path)
		} else if vanished(err) != nil {
			return classify("search", path, err)
		}
	}
	if s.seen++; s.seen%256 == 0 && s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	if len(s.found) >= s.limit || s.size >= pageBytes || s.seen%64 == 0 && time.Now().After(s.end) {
		s.at = path
		return errPause
	}
	if kindOf(d, n.name, n.kind) != unix.DT_DIR {
		return nil
	}
	return s.descend(d, n.name, path, "", depth)
}

func (s *search) descend(d *os.File, name, path, after string, depth int) error {
	sub, err := openDir(d, name, inside|unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return classify("search", path, vanished(err))
	}
	defer sub.Close()
	return s.dir(sub, path, after, depth+1)
}
