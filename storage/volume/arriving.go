package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
)

// arrivingDir, in a scope, contains copies until they are complete: one directory per call,
// locked while a call works in it. It counts against the scope's limit.
const arrivingDir = ".arriving"

// How long an unfinished copy is kept, so that a repeated call can continue it: after a crash,
// and after a cancelled call.
const (
	arrivalLife = 24 * time.Hour
	endedLife   = 15 * time.Minute
)

// arrival is the directory in which one call creates its copies.
type arrival struct {
	bin  *os.File
	dir  *os.File
	name string

	vol   *Volume // with the next field: where storage is reserved
	scope string
	size  int64
}

// openArrival creates the directory of a call, or opens the one of an earlier call.
func openArrival(scope *os.File, name string) (*arrival, error) {
	bin, err := mkdir(scope, arrivingDir, 0o700, plain)
	if err != nil {
		return nil, err
	}
	for range 16 { // another call may finish or sweep it concurrently
		var dir *os.File
		if dir, err = mkdir(bin, name, 0o700, plain); err != nil {
			break
		}
		if err = lockDir(bin, dir, name); err == nil {
			now := unix.NsecToTimespec(time.Now().UnixNano())
			err = unix.UtimesNanoAt(int(bin.Fd()), name, []unix.Timespec{now, now}, unix.AT_SYMLINK_NOFOLLOW)
		}
		if err == nil {
			return &arrival{bin: bin, dir: dir, name: name}, nil
		}
		dir.Close()
		if !errors.Is(err, unix.ENOENT) {
			break
		}
	}
	return nil, errors.Join(err, bin.Close())
}

// lockDir locks a directory for this call, across processes. It returns ENOENT if the
// directory was moved away.
func lockDir(bin, dir *os.File, name string) error {
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			return fmt.Errorf("the same call is already running: %w", errdefs.ErrAborted)
		}
		return err
	}
	var mine, there unix.Stat_t
	err := errors.Join(unix.Fstat(int(dir.Fd()), &mine), unix.Fstatat(int(bin.Fd()), name, &there, unix.AT_SYMLINK_NOFOLLOW))
	if err == nil && mine.Ino != there.Ino {
		err = unix.ENOENT
	}
	return err
}

// admit returns an error if the scope has no space for the rest of a copy.
func (a *arrival) admit(ctx context.Context, v *Volume, scope string, size int64, m *Meter) error {
	have := counter{ctx: ctx, sizes: true}
	if err := have.below(a.dir, "", 0); err != nil {
		return classify("count", a.name, err)
	}
	err := v.fits(ctx, scope, Room{Writer: a.name, Size: max(size, have.bytes), There: have.bytes})
	if err == nil {
		a.vol, a.scope, a.size = v, scope, size
		before := m.Read().Bytes
		m.watch(func(bytes int64) { v.Wrote(scope, a.name, bytes-before) })
		return nil
	}
	if have.bytes == 0 {
		err = errors.Join(err, a.remove())
	}
	return err
}

// ended records the result of the call. The remains of a cancelled call are removed soon.
func (a *arrival) ended(ctx context.Context, err error) {
	if err != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		var never [2]unix.Timespec
		_ = unix.UtimesNanoAt(int(a.bin.Fd()), a.name, never[:], unix.AT_SYMLINK_NOFOLLOW)
	}
	if a.vol != nil {
		a.endReservation(err)
	}
	a.dir.Close()
	a.bin.Close()
}

// endReservation ends the reservation. The remains of an interrupted call stay for the next one.
func (a *arrival) endReservation(err error) {
	if err == nil {
		a.vol.Stays(a.scope, a.name, a.size)
		return
	}
	left := counter{ctx: context.Background(), sizes: true}
	if cerr := left.below(a.dir, "", 0); cerr != nil || left.bytes == 0 {
		a.vol.Withdraw(a.scope, a.name)
		return
	}
	a.vol.Stays(a.scope, a.name, left.bytes)
}

// remove removes the directory with its contents.
func (a *arrival) remove() error {
	r := &remover{ctx: context.Background(), resolve: plain, meter: NewMeter()}
	return r.tree(a.bin, a.name)
}

// dropArrival removes the remains of an unfinished call, after it has waited for a call that
// is ending.
func dropArrival(ctx context.Context, scope *os.File, name string) error {
	bin, err := openDir(scope, arrivingDir, plain)
	if err != nil {
		return vanished(err)
	}
	defer bin.Close()
	for end := time.Now().Add(takeLong); ; {
		dir, err := openDir(bin, name, plain)
		if err != nil {
			return vanished(err)
		}
		err = lockDir(bin, dir, name)
		if err == nil {
			err = (&remover{ctx: ctx, resolve: plain, meter: NewMeter()}).tree(bin, name)
		}
		dir.Close()
		if !errdefs.IsAborted(err) || time.Now().After(end) {
			return vanished(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// takeLong is how long a copy can take to notice that it was cancelled.
const takeLong = 10 * time.Second

// SweepArrivals removes the remains of calls that were not repeated.
func (v *Volume) SweepArrivals(ctx context.Context, scope string, now time.Time) error {
	s, err := v.openScope(scope)
	if err != nil {
		return err
	}
	defer s.Close()
	bin, err := openDir(s, arrivingDir, plain)
	if err != nil {
		return classify("sweep", arrivingDir, vanished(err))
	}
	defer bin.Close()
	var old []string
	err = eachName(bin, func(name []byte) {
		var st unix.Stat_t
		if unix.Fstatat(int(bin.Fd()), string(name), &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			return
		}
		age, ended := now.Sub(time.Unix(st.Ctim.Unix())), st.Mtim == unix.Timespec{}
		if age > arrivalLife || ended && age > endedLife {
			old = append(old, string(name))
		}
	})
	for _, name := range old {
		if derr := dropArrival(ctx, s, name); derr != nil && !errdefs.IsAborted(derr) {
			err = errors.Join(err, derr)
		}
	}
	return classify("sweep", arrivingDir, err)
}
