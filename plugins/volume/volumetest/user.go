package volumetest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/plugins/suite"
)

const nobody = 65534

func (b *bench) uid() int {
	if u := b.plugin.Environment.UID; u != 0 {
		return u
	}
	return nobody
}

// as runs f as a session's user, because root is exempt from some limits.
func (b *bench) as(f func() error) error {
	if as := b.plugin.Environment.As; as != nil {
		return as(b.uid(), f)
	}
	if os.Geteuid() == b.uid() {
		return f()
	}
	if os.Geteuid() != 0 {
		return suite.Skip("only root can write as a session's user")
	}
	return become(b.uid(), f)
}

// become runs f in a thread that has dropped all privileges and ends afterwards.
func become(uid int, f func() error) error {
	result := make(chan error, 1)
	var run func()
	run = func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this function
		if unix.Gettid() == os.Getpid() {
			// The main thread would not exit but sleep, and the process would appear to belong to
			// the user. While it is locked, another thread is used.
			waiting := make(chan struct{})
			go func() { defer close(waiting); run() }()
			<-waiting
			runtime.UnlockOSThread()
			return
		}
		var err error
		for _, call := range [][4]uintptr{
			{syscall.SYS_SETGROUPS, 0, 0, 0},
			{syscall.SYS_SETRESGID, uintptr(uid), uintptr(uid), uintptr(uid)},
			{syscall.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)},
		} {
			// This changes only this thread; syscall.Setresuid would change all threads.
			if _, _, errno := syscall.RawSyscall(call[0], call[1], call[2], call[3]); errno != 0 {
				err = errors.Join(err, errno)
			}
		}
		if err != nil {
			result <- suite.Skip("cannot become a session's user: " + err.Error())
			return
		}
		result <- f()
	}
	go run()
	return <-result
}

// home creates a directory in a scope that a session's user can write to.
func (b *bench) home(id string) (string, error) {
	dir := b.at(id, "session")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if os.Geteuid() != 0 {
		return dir, nil
	}
	return dir, os.Chown(dir, b.uid(), b.uid())
}

// written is the result of writing.
type written struct {
	accepted int64
	err      error  // the error that stopped it; nil if everything was written
	at       string // write, fsync or close
}

// stopped returns an error unless a limit stopped the writer.
func (w written) stopped() error {
	if w.err == nil {
		return nil
	}
	if errors.Is(w.err, unix.EDQUOT) || errors.Is(w.err, unix.ENOSPC) {
		return nil
	}
	return fmt.Errorf("%s: %w, want EDQUOT or ENOSPC", w.at, w.err)
}

// write writes up to most bytes until it is stopped. It syncs periodically, because many products
// count only data that has reached them.
func (b *bench) write(path string, most int64) written {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return written{0, err, "open"}
	}
	var w written
	data := random()
	for block := make([]byte, 256<<10); w.accepted < most; {
		if _, err := io.ReadFull(data, block); err != nil {
			return written{w.accepted, err, "random"}
		}
		n, err := f.Write(block)
		if w.accepted += int64(n); err != nil {
			w.err, w.at = err, "write"
			break
		}
		if w.accepted%(4<<20) == 0 {
			if err := f.Sync(); err != nil {
				w.err, w.at = err, "fsync"
				break
			}
			time.Sleep(b.plugin.Environment.Pause)
		}
	}
	if err := f.Sync(); err != nil && w.err == nil {
		w.err, w.at = err, "fsync"
	}
	if err := f.Close(); err != nil && w.err == nil {
		w.err, w.at = err, "close"
	}
	return w
}

// stored returns the stored bytes and the number of files of a tree.
func stored(dir string) (bytes int64, files int, err error) {
	err = filepath.WalkDir(dir, func(p string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return err
		}
		bytes += st.Blocks * 512
		files++
		return nil
	})
	return bytes, files, err
}
