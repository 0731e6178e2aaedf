package volume

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/folderpath"
)

// Pair is a path in a folder and its new path, which can be in another folder.
type Pair struct{ From, To string }

// Transfer copies or moves files, directories and links between folders.
type Transfer struct {
	From, To  *Folder
	Pairs     []Pair
	Move      bool // both folders on one volume; renames if the file system can
	Overwrite bool // replace a file or link at a target
	Meter     *Meter
	// OnResult is called once with the result of every pair, in no order.
	OnResult func(i int, e Entry, err error)
}

// Run processes all pairs, and returns an error only if it was cancelled. Copies are created
// outside of the folder and appear together when all are on disk. A repeated call continues an
// interrupted one.
func (t *Transfer) Run(ctx context.Context) error {
	if t.Move && t.From.vol != t.To.vol {
		return invalid("from volume %q to %q: only copies go to another volume", t.From.vol.Name(), t.To.vol.Name())
	}
	pairs := make([]Pair, len(t.Pairs))
	var left []int // pairs to copy
	for i := range t.Pairs {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		if pairs[i], err = t.check(t.Pairs[i]); err != nil {
			t.OnResult(i, Entry{}, err)
			continue
		}
		if !t.Move {
			left = append(left, i)
			continue
		}
		err = t.rehome(ctx, pairs[i])
		if errors.Is(err, unix.EXDEV) {
			left = append(left, i)
			continue
		}
		t.Meter.did(1, 0)
		t.report(i, pairs[i], err)
	}
	if len(left) == 0 {
		return nil
	}
	return t.carry(ctx, pairs, left)
}

func (t *Transfer) check(p Pair) (Pair, error) {
	from, err := Clean(p.From)
	if err != nil {
		return p, err
	}
	if from == "" {
		return p, invalid("from: is the folder itself")
	}
	to, err := CleanNew(p.To)
	if err != nil {
		return p, err
	}
	if t.same() && strings.HasPrefix(to, from+"/") {
		return p, invalid("to %q: is inside %q", to, from)
	}
	return Pair{from, to}, nil
}

func (t *Transfer) same() bool { return t.From.vol == t.To.vol && t.From.Path == t.To.Path }

// report reports the result of a pair.
func (t *Transfer) report(i int, p Pair, err error) {
	var e Entry
	if err == nil {
		e, err = t.To.Stat(p.To)
	}
	t.OnResult(i, e, err)
}

// into opens the target directory of a pair.
func (t *Transfer) into(p Pair) (*os.File, string, error) {
	d, name, err := t.To.parent(p.To)
	if errors.Is(err, unix.ENOENT) {
		dir, _ := split(p.To)
		err = fmt.Errorf("directory %q does not exist: %w", dir, errdefs.ErrNotFound)
	}
	return d, name, err
}

// rehome renames a pair into another scope if that scope's limit, which the proxy must
// enforce, allows it.
func (t *Transfer) rehome(ctx context.Context, p Pair) error {
	scope, vol := t.To.Path[:32], t.To.vol
	if t.From.Path[:32] == scope || vol.Enforcement() != "cooperative" {
		return t.rename(p)
	}
	c := counter{ctx: ctx, sizes: true}
	dir, name, err := t.From.parent(p.From)
	if err != nil {
		return classify("move", p.From, err)
	}
	err = c.count(dir, name)
	dir.Close()
	if err != nil {
		return classify("count", p.From, err)
	}
	r := Room{Writer: "move-" + rand.Text(), Size: c.bytes}
	if err := vol.Reserve(ctx, scope, r); err != nil {
		return err
	}
	if err := t.rename(p); err != nil {
		vol.Withdraw(scope, r.Writer)
		return err
	}
	vol.Stays(scope, r.Writer, r.Size)
	return nil
}

// rename moves a pair without copying; EXDEV if that is not possible.
func (t *Transfer) rename(p Pair) error {
	source, fromName, err := t.From.parent(p.From)
	if err != nil {
		return classify("move", p.From, err)
	}
	defer source.Close()
	target, toName, err := t.into(p)
	if err != nil {
		return classify("move to", p.To, err)
	}
	defer target.Close()
	if room := walkDepth - folderpath.Depth(p.To); folderpath.Depth(p.To) > folderpath.Depth(p.From) && deeper(source, fromName, room) {
		return invalid("move to %.80q: the contents of %.80q would be more than %d levels deep", p.To, p.From, walkDepth)
	}
	err = rename(source, fromName, target, toName, t.Overwrite)
	switch {
	case errors.Is(err, unix.EXDEV):
		return err
	case errors.Is(err, unix.ENOENT):
		return classify("move", p.From, err)
	}
	return classify("move to", p.To, err)
}

// carry copies pairs and moves the copies to their targets.
func (t *Transfer) carry(ctx context.Context, pairs []Pair, left []int) (err error) {
	a, err := openArrival(t.To.scope, t.name())
	if err != nil {
		return classify("copy", "", err)
	}
	defer func() { a.ended(ctx, err) }()
	j, err := openJournal(a.dir)
	if err != nil {
		return classify("copy", "", err)
	}
	defer j.close()
	if err := t.room(ctx, a, pairs, left); err != nil {
		return err
	}
	var copied []int
	c := newCopier(ctx, a.dir, t.Meter)
	defer c.cancel(nil)
	for _, i := range left {
		switch arrived, err := t.one(ctx, c, a, j, i, pairs[i]); {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			t.OnResult(i, Entry{}, err)
		case arrived:
			t.report(i, pairs[i], t.leave(ctx, pairs[i]))
		default:
			copied = append(copied, i)
		}
	}
	if err := unix.Syncfs(int(a.dir.Fd())); err != nil {
		return classify("copy", "", err)
	}
	for _, i := range copied {
		if err := ctx.Err(); err != nil {
			return err
		}
		t.report(i, pairs[i], t.place(ctx, a, j, i, pairs[i]))
	}
	return classify("copy", "", a.remove())
}

// name returns the same name for the same call.
func (t *Transfer) name() string {
	raw, err := json.Marshal([]any{t.From.vol.Name(), t.From.Path, t.To.Path, t.Pairs, t.Move, t.Overwrite})
	if err != nil {
		panic(err) // cannot happen: only strings and booleans
	}
	sum := sha256.Sum256(raw)
	return "files-" + hex.EncodeToString(sum[:16])
}

// room counts the bytes to copy and returns an error if the scope has no space for them.
func (t *Transfer) room(ctx context.Context, a *arrival, pairs []Pair, left []int) error {
	c := counter{ctx: ctx, sizes: true}
	for _, i := range left {
		dir, name, err := t.From.parent(pairs[i].From)
		if err != nil {
			continue // reported when its turn comes
		}
		err = c.count(dir, name)
		dir.Close()
		if err != nil {
			return classify("count", pairs[i].From, err)
		}
	}
	t.Meter.expect(c.files, c.bytes)
	return a.admit(ctx, t.To.vol, t.To.Path[:32], c.bytes, t.Meter)
}

// one copies one pair into the arrival directory, unless an earlier call has already moved the
// copy to its target.
func (t *Transfer) one(ctx context.Context, c *copier, a *arrival, j *journal, i int, p Pair) (arrived bool, err error) {
	target, toName, err := t.into(p)
	if err != nil {
		return false, classify("copy to", p.To, err)
	}
	defer target.Close()
	var st unix.Stat_t
	err = unix.Fstatat(int(target.Fd()), toName, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case err == nil && j.placed[i] == st.Ino:
		return true, nil
	case err == nil && !t.Overwrite:
		return false, classify("copy to", p.To, unix.EEXIST)
	case err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return false, classify("copy to", p.To, unix.EISDIR)
	case err != nil && !errors.Is(err, unix.ENOENT):
		return false, classify("copy to", p.To, err)
	}
	source, fromName, err := t.From.parent(p.From)
	if err != nil {
		return false, classify("copy", p.From, err)
	}
	defer source.Close()
	if !there(source, fromName) {
		return false, classify("copy", p.From, unix.ENOENT)
	}
	name := strconv.Itoa(i)
	err = c.copy(source, fromName, name, folderpath.Depth(p.To))
	if err == nil && !there(a.dir, name) {
		err = classify("copy", p.From, notRegular{})
	}
	if err != nil && ctx.Err() == nil {
		// A pair that does not fit frees its space, and the next one is tried.
		c.restart(ctx)
		err = errors.Join(err, (&remover{ctx: ctx, resolve: plain, meter: NewMeter()}).tree(a.dir, name))
	}
	return false, err
}

// place moves a copy to its target, and for a move removes the original.
func (t *Transfer) place(ctx context.Context, a *arrival, j *journal, i int, p Pair) error {
	target, toName, err := t.into(p)
	if err != nil {
		return classify("copy to", p.To, err)
	}
	defer target.Close()
	if err := j.note(a.dir, i); err != nil {
		return classify("copy to", p.To, err)
	}
	if err := rename(a.dir, strconv.Itoa(i), target, toName, t.Overwrite); err != nil {
		return classify("copy to", p.To, err)
	}
	if err := target.Sync(); err != nil {
		return classify("copy to", p.To, err)
	}
	return t.leave(ctx, p)
}

// leave removes the original of a moved pair.
func (t *Transfer) leave(ctx context.Context, p Pair) error {
	if !t.Move {
		return nil
	}
	if err := t.From.Remove(ctx, p.From, true, NewMeter()); err != nil {
		return fmt.Errorf("copied, but the original stays: %w", err)
	}
	return nil
}

// journal records which copies were moved to their targets, for a repeated call after a crash.
// It uses inodes, since another file with the same name may be at the target.
type journal struct {
	file   *os.File
	placed map[int]uint64
}

func openJournal(dir *os.File) (*journal, error) {
	f, err := openat2(dir, "journal", unix.O_RDWR|unix.O_CREAT|unix.O_APPEND|unix.O_NOFOLLOW, 0o600, plain)
	if err != nil {
		return nil, err
	}
	j := &journal{file: f, placed: make(map[int]uint64)}
	for {
		var i int
		var ino uint64
		if _, err := fmt.Fscanf(f, "%d %d\n", &i, &ino); err != nil {
			return j, nil // the end, or an incomplete line of a killed proxy
		}
		j.placed[i] = ino
	}
}

// note records that a copy is about to be moved to its target.
func (j *journal) note(dir *os.File, i int) error {
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), strconv.Itoa(i), &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	_, err := fmt.Fprintf(j.file, "%d %d\n", i, st.Ino)
	return err
}

func (j *journal) close() { j.file.Close() }
