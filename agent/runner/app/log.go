package app

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// maxLog is the size of a log file in bytes. The current file and the previous one are kept.
const maxLog = 256 << 10

const (
	logFile      = "log"
	previousFile = "log.1"
)

// boundedLog is the output of a program. Writes never fail, because the program must not block or
// end when the directory is full.
type boundedLog struct {
	dir string

	mu   sync.Mutex
	file *os.File
	size int64
}

// newLog starts an empty log in a directory.
func newLog(dir string) (*boundedLog, error) {
	_ = os.Remove(filepath.Join(dir, previousFile))
	l := &boundedLog{dir: dir}
	return l, l.create()
}

func (l *boundedLog) create() (err error) {
	l.file, err = os.OpenFile(filepath.Join(l.dir, logFile), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	l.size = 0
	return err
}

// Write implements io.Writer.
func (l *boundedLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return len(b), nil
	}
	if l.size+int64(len(b)) > maxLog && l.size > 0 {
		l.file.Close()
		_ = os.Rename(filepath.Join(l.dir, logFile), filepath.Join(l.dir, previousFile))
		if err := l.create(); err != nil {
			l.file = nil
			return len(b), nil
		}
	}
	n, _ := l.file.Write(b)
	l.size += int64(n)
	return len(b), nil
}

// Close closes the file.
func (l *boundedLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// Tail returns at most the last n bytes of an app's output.
func Tail(name string, n int64) ([]byte, error) {
	d, err := open(name)
	if err != nil {
		return nil, err
	}
	current, err := end(d.path(logFile), n)
	if err != nil {
		return nil, err
	}
	previous, err := end(d.path(previousFile), n-int64(len(current)))
	return append(previous, current...), err
}

// end returns at most the last n bytes of a file, which can be missing.
func end(path string, n int64) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(f, max(0, st.Size()-n), min(n, st.Size())))
}
