package volumetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/berthhq/berth/plugins/suite"
	"github.com/berthhq/berth/plugins/volume"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// These checks inspect the disk as a session's user, because the product may behave differently
// from the plugin's responses. They skip cooperative limits, which do not stop writers on the
// mount.
var effectChecks = []Check{
	{"effect-bytes", "a session's user is stopped at the limit, with an error at close at the latest, and the disk has no more data", effectBytes},
	{"effect-raise", "after the limit is raised, the user can write up to the new one", effectRaise},
	{"effect-unset", "without a limit, no user is stopped", effectUnset},
	{"effect-zero", "a limit of zero is refused, or no data can be stored", effectZero},
	{"effect-apart", "a full scope does not stop writers in another one", effectApart},
	{"effect-free", "in a full scope, files can be removed, which frees space", effectFree},
	{"effect-lower", "a limit below the usage stops writers and removes no data", effectLower},
	{"effect-inodes", "a session's user is stopped at the limit of files, and continues after it is raised", effectInodes},
	{"effect-rename", "files that are moved into a full scope cannot exceed its limit", effectRename},
	{"effect-usage", "the usage of a full scope agrees with its disk", effectUsage},
}

const effectLimit = 32 << 20

// enforced creates a scope with a limit that the product enforces.
func (b *bench) enforced(ctx context.Context, limit *pb.Limit) (*volume.Client, *pb.OpenVolumeResponse, string, string, error) {
	fail := func(err error) (*volume.Client, *pb.OpenVolumeResponse, string, string, error) {
		return nil, nil, "", "", err
	}
	c, r, err := b.open(ctx)
	if err != nil {
		return fail(err)
	}
	switch r.Enforcement {
	case pb.Enforcement_NONE:
		return fail(suite.Skip("there are no limits"))
	case pb.Enforcement_COOPERATIVE:
		return fail(suite.Skip("limits are cooperative: the proxy keeps them"))
	}
	if limit.GetInodes() != 0 && !has(r, pb.Capability_QUOTA_INODES) {
		return fail(suite.Skip("no QUOTA_INODES"))
	}
	if limit.GetInodes() == 0 && !has(r, pb.Capability_QUOTA_BYTES) {
		return fail(suite.Skip("no QUOTA_BYTES"))
	}
	if err := b.as(func() error { return nil }); err != nil {
		return fail(err)
	}
	id, err := b.create(ctx, c, nil) // the helper files are outside the limited scope
	if err != nil {
		return fail(err)
	}
	home, err := b.home(id)
	if err != nil {
		return fail(err)
	}
	if limit == nil {
		return c, r, id, home, nil
	}
	return c, r, id, home, set(ctx, c, id, limit)
}

// most returns how many bytes may be stored under a limit, and how many are written before the
// check concludes that the product does not stop writers.
func (b *bench) most(r *pb.OpenVolumeResponse, limit int64) (stored, written int64) {
	f := b.plugin.Environment.Tolerance
	if f == 0 {
		f = map[pb.Enforcement]float64{pb.Enforcement_HARD: 1.02, pb.Enforcement_DELAYED: 1.5}[r.Enforcement]
	}
	return int64(float64(limit) * f), 4 * limit
}

// full writes as the user until a write fails, and checks the position.
func (b *bench) full(r *pb.OpenVolumeResponse, id, path string, limit int64) (written, error) {
	most, tried := b.most(r, limit)
	var w written
	if err := b.as(func() error { w = b.write(path, tried); return w.stopped() }); err != nil {
		return w, err
	}
	if w.err == nil {
		return w, fmt.Errorf("%d bytes were accepted, the limit is %d", w.accepted, limit)
	}
	got, _, err := stored(b.at(id))
	if err != nil {
		return w, err
	}
	if got > most {
		return w, fmt.Errorf("%d bytes are stored, the limit is %d and %d is the most with %v", got, limit, most, r.Enforcement)
	}
	if got < limit/2 {
		return w, fmt.Errorf("%d bytes are stored when the user is stopped, the limit is %d", got, limit)
	}
	return w, nil
}

func effectBytes(ctx context.Context, b *bench) error {
	_, r, id, home, err := b.enforced(ctx, bytesOf(effectLimit))
	if err != nil {
		return err
	}
	w, err := b.full(r, id, filepath.Join(home, "file"), effectLimit)
	if err != nil {
		return err
	}
	got, _, err := stored(b.at(id))
	if err != nil {
		return err
	}
	return suite.Note(fmt.Sprintf("%v at %s, %.2f %% of the limit stored", errors.Unwrap(w.err), w.at, 100*float64(got)/effectLimit))
}

// grows writes as the user data that must fit. It retries, because the product may show freed space
// with a delay.
func (b *bench) grows(ctx context.Context, path string, size int64) error {
	return b.eventually(ctx, func() error {
		return b.as(func() error {
			w := b.write(path, size)
			if w.err != nil {
				return fmt.Errorf("%s after %d of %d bytes: %w", w.at, w.accepted, size, w.err)
			}
			return nil
		})
	})
}

func effectRaise(ctx context.Context, b *bench) error {
	c, r, id, home, err := b.enforced(ctx, bytesOf(effectLimit))
	if err != nil {
		return err
	}
	if _, err := b.full(r, id, filepath.Join(home, "file"), effectLimit); err != nil {
		return err
	}
	if err := set(ctx, c, id, bytesOf(2*effectLimit)); err != nil {
		return err
	}
	if err := b.grows(ctx, filepath.Join(home, "more"), 4<<20); err != nil {
		return err
	}
	_, err = b.full(r, id, filepath.Join(home, "more"), 2*effectLimit)
	return err
}

func effectUnset(ctx context.Context, b *bench) error {
	c, _, id, home, err := b.enforced(ctx, bytesOf(8<<20))
	if err != nil {
		return err
	}
	if err := set(ctx, c, id, nil); err != nil {
		return err
	}
	return b.grows(ctx, filepath.Join(home, "file"), 24<<20)
}

func effectZero(ctx context.Context, b *bench) error {
	c, r, id, home, err := b.enforced(ctx, nil)
	if err != nil {
		return err
	}
	_, err = c.SetScopeLimit(ctx, &pb.ScopeRequest{Volume: volumeName, Scope: id, Limit: bytesOf(0)})
	if want("", err, codes.InvalidArgument) == nil {
		return suite.Note("it is refused")
	}
	if err != nil {
		return err
	}
	var w written
	if err := b.as(func() error { w = b.write(filepath.Join(home, "file"), 64<<20); return w.stopped() }); err != nil {
		return err
	}
	most := int64(1 << 20) // for the product's own data
	if r.Enforcement == pb.Enforcement_DELAYED {
		most = 32 << 20
	}
	got, _, err := stored(b.at(id))
	if err == nil && (w.err == nil || got > most) {
		err = fmt.Errorf("with a limit of zero %d bytes are stored (%v)", got, w.err)
	}
	return err
}

// beside returns the home of another scope without a limit.
func (b *bench) beside(ctx context.Context, c *volume.Client) (string, error) {
	id, err := b.create(ctx, c, nil)
	if err != nil {
		return "", err
	}
	return b.home(id)
}

func effectApart(ctx context.Context, b *bench) error {
	c, r, id, home, err := b.enforced(ctx, bytesOf(effectLimit))
	if err != nil {
		return err
	}
	there, err := b.beside(ctx, c)
	if err != nil {
		return err
	}
	if _, err := b.full(r, id, filepath.Join(home, "file"), effectLimit); err != nil {
		return err
	}
	return b.grows(ctx, filepath.Join(there, "file"), 8<<20)
}

func effectFree(ctx context.Context, b *bench) error {
	_, r, id, home, err := b.enforced(ctx, bytesOf(effectLimit))
	if err != nil {
		return err
	}
	if _, err := b.full(r, id, filepath.Join(home, "file"), effectLimit); err != nil {
		return err
	}
	if err := b.as(func() error { return os.Remove(filepath.Join(home, "file")) }); err != nil {
		return fmt.Errorf("remove in a full scope: %w", err)
	}
	return b.grows(ctx, filepath.Join(home, "next"), 4<<20)
}

func effectLower(ctx context.Context, b *bench) error {
	c, _, id, home, err := b.enforced(ctx, bytesOf(2*effectLimit))
	if err != nil {
		return err
	}
	if err := b.grows(ctx, filepath.Join(home, "file"), effectLimit); err != nil {
		return err
	}
	if err := set(ctx, c, id, bytesOf(effectLimit/2)); err != nil {
		if want("", err, codes.InvalidArgument, codes.FailedPrecondition) == nil {
			return suite.Note("it is refused")
		}
		return err
	}
	before, _, err := stored(b.at(id))
	if err != nil {
		return err
	}
	var w written
	if err := b.as(func() error { w = b.write(filepath.Join(home, "more"), 2*effectLimit); return w.stopped() }); err != nil {
		return err
	}
	after, _, err := stored(b.at(id))
	if err == nil && (w.err == nil || after < before) {
		err = fmt.Errorf("%d bytes were stored and %d are (%v)", before, after, w.err)
	}
	return err
}

// touch creates files until this fails.
func (b *bench) touch(dir, name string, most int) (int, error) {
	for i := range most {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d", name, i)), nil, 0o644); err != nil {
			return i, written{err: err, at: "create"}.stopped()
		}
		if i%20 == 0 {
			time.Sleep(b.plugin.Environment.Pause)
		}
	}
	return most, nil
}

func effectInodes(ctx context.Context, b *bench) error {
	if b.plugin.Environment.NoInodes {
		return suite.Skip("the product is simulated and does not count files")
	}
	n := int64(200)
	c, r, id, home, err := b.enforced(ctx, &pb.Limit{Inodes: &n})
	if err != nil {
		return err
	}
	var made int
	if err := b.as(func() (err error) { made, err = b.touch(home, "file", 1000); return err }); err != nil {
		return err
	}
	most, _ := b.most(r, n)
	_, files, err := stored(b.at(id))
	if err != nil {
		return err
	}
	if made == 1000 || int64(files) > most || int64(files) < n-8 { // directories count
		return fmt.Errorf("%d files are there, the limit is %d", files, n)
	}
	more := max(n, int64(files)) + 50 // products with delayed limits allow more than n
	if err := set(ctx, c, id, &pb.Limit{Inodes: &more}); err != nil {
		return err
	}
	return b.eventually(ctx, func() error {
		return b.as(func() error {
			if n, err := b.touch(home, "more", 40); err != nil || n < 40 {
				return fmt.Errorf("with %d there and a limit of %d, %d files more (%v)", files, more, n, err)
			}
			return nil
		})
	})
}

func effectRename(ctx context.Context, b *bench) error {
	c, r, id, home, err := b.enforced(ctx, bytesOf(effectLimit))
	if err != nil {
		return err
	}
	there, err := b.beside(ctx, c)
	if err != nil {
		return err
	}
	if err := b.grows(ctx, filepath.Join(there, "big"), 2*effectLimit); err != nil {
		return err
	}
	moved := b.as(func() error { return os.Rename(filepath.Join(there, "big"), filepath.Join(home, "big")) })
	most, _ := b.most(r, effectLimit)
	got, _, err := stored(b.at(id))
	if err == nil && got > most {
		err = fmt.Errorf("moving files in changed the usage to %d bytes from %d (%v)", got, int64(effectLimit), moved)
	}
	if err != nil {
		return err
	}
	return suite.Note(fmt.Sprint("moving it: ", moved))
}

func effectUsage(ctx context.Context, b *bench) error {
	c, r, id, home, err := b.enforced(ctx, bytesOf(effectLimit))
	if err != nil {
		return err
	}
	if _, err := b.full(r, id, filepath.Join(home, "file"), effectLimit); err != nil {
		return err
	}
	du, err := volume.Usage(ctx, b.at(id))
	if err != nil {
		return err
	}
	return b.uses(ctx, c, id, du.Bytes)
}
