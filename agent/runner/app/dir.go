package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/berthhq/berth/internal/appstate"
)

// parents are the directories in which the state can be, in order of preference. The first is in
// memory in every container.
var parents = []string{"/dev/shm", "/tmp", "/var/tmp"}

// root creates the private directory of all apps, if necessary, and returns its path.
func root() (string, error) {
	var problems error
	for _, parent := range parents {
		path := filepath.Join(parent, ".berth-apps-"+strconv.Itoa(os.Getuid()))
		if err := private(path); err != nil {
			problems = errors.Join(problems, err)
			continue
		}
		return path, nil
	}
	return "", fmt.Errorf("no directory for the state of apps: %w", problems)
}

// private makes sure that a directory exists that only this user can access. Another user of the
// container may have created it, or a link, before.
func private(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	st, err := os.Lstat(path)
	if err != nil {
		return err
	}
	owner, ok := st.Sys().(*syscall.Stat_t)
	if !ok || !st.IsDir() || st.Mode().Perm()&0o077 != 0 || int(owner.Uid) != os.Getuid() {
		return fmt.Errorf("%s is not a private directory of this user", path)
	}
	return nil
}

// dir is the directory of one app.
type dir string

// open creates the directory of an app if necessary.
func open(name string) (dir, error) {
	if err := appstate.CheckName(name); err != nil {
		return "", err
	}
	all, err := root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(all, name)
	return dir(path), private(path)
}

func (d dir) name() string            { return filepath.Base(string(d)) }
func (d dir) path(file string) string { return filepath.Join(string(d), file) }

// errBusy is the error of lock while a supervisor runs.
var errBusy = errors.New("the app is already running")

// lock takes the lock that a supervisor holds for its life, so that an app never runs twice. The
// kernel releases it when the last process that has the file open has ended.
func (d dir) lock() (*os.File, error) {
	f, err := os.OpenFile(d.path("lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errBusy
		}
		return nil, fmt.Errorf("lock app %s: %w", d.name(), err)
	}
	return f, nil
}

// busy reports whether a supervisor holds the lock.
func (d dir) busy() (bool, error) {
	f, err := d.lock()
	if errors.Is(err, errBusy) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, f.Close()
}

// state returns the recorded state. An app whose supervisor was killed is not running.
func (d dir) state() (st appstate.State, err error) {
	st.Name = d.name()
	locked, err := d.busy() // first: a supervisor writes the end before it releases the lock
	if err != nil {
		return st, err
	}
	text, err := os.ReadFile(d.path("state.json"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return st, err
	}
	if err == nil {
		if err := json.Unmarshal(text, &st); err != nil {
			return st, fmt.Errorf("state of app %s: %w", d.name(), err)
		}
	}
	st.Running = locked && st.Ended.IsZero()
	if !locked && !st.Started.IsZero() && st.Ended.IsZero() {
		st.Exit, st.Reason = 137, "its supervisor was killed"
	}
	return st, nil
}

func (d dir) write(file string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	tmp := d.path(file + ".new")
	if err := os.WriteFile(tmp, text, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, d.path(file))
}
