package logs

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// By default 2 files of 16 MiB are kept, so between 16 and 32 MiB of output.
const (
	DefaultFileBytes = 16 << 20
	DefaultFiles     = 2
)

// Writer appends output to the newest file of a directory, and removes the oldest file if there are
// too many. It is safe for concurrent use.
type Writer struct {
	dir   string
	max   int64
	files int

	mu    sync.Mutex
	file  *os.File
	start int64 // offset of the file's first byte
	size  int64
}

// NewWriter opens the log in dir or creates one.
func NewWriter(dir string, fileBytes int64, files int) (*Writer, error) {
	if fileBytes < 1 || files < 1 {
		return nil, fmt.Errorf("log in %s: %d files of %d bytes keep nothing", dir, files, fileBytes)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	w := &Writer{dir: dir, max: fileBytes, files: files}
	starts, err := segments(dir)
	if err != nil {
		return nil, err
	}
	if len(starts) > 0 {
		w.start = starts[len(starts)-1]
	}
	return w, w.open()
}

func (w *Writer) open() error {
	f, err := os.OpenFile(segment(w.dir, w.start), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	end, err := f.Seek(0, 2)
	if err != nil {
		f.Close()
		return err
	}
	w.file, w.size = f, end
	return nil
}

// Write appends p and starts a new file when the present one is full. After an error, bytes of p
// are lost, but the writer can be used again.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	total := 0
	for len(p) > 0 {
		if w.size >= w.max {
			if err := w.rotate(); err != nil {
				return total, err
			}
		}
		n, err := w.file.Write(p[:min(int64(len(p)), w.max-w.size)])
		w.size += int64(n)
		total += n
		if err != nil {
			return total, err
		}
		p = p[n:]
	}
	return total, nil
}

// rotate starts the next file and removes the oldest ones.
func (w *Writer) rotate() error {
	full := w.file
	begin, size := w.start, w.size
	w.start += w.size
	if err := w.open(); err != nil {
		w.start, w.size = begin, size
		return err
	}
	full.Close()
	starts, err := segments(w.dir)
	if err != nil {
		return err
	}
	for len(starts) > w.files {
		if err := os.Remove(segment(w.dir, starts[0])); err != nil {
			return err
		}
		starts = starts[1:]
	}
	return nil
}

// Close closes the newest file.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.file.Close()
}

// segment returns the name of the file that begins at an offset. Leading zeros make the
// alphabetical order the order of the offsets.
func segment(dir string, start int64) string {
	s := strconv.FormatInt(start, 10)
	const digits = "0000000000000000000"
	return filepath.Join(dir, digits[len(s):]+s+".log")
}

// segments returns the sorted start offsets of the files in dir.
func segments(dir string) ([]int64, error) {
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return nil, err
	}
	var starts []int64
	for _, e := range entries {
		name := e.Name()
		if len(name) != 23 || filepath.Ext(name) != ".log" {
			continue
		}
		start, err := strconv.ParseInt(name[:19], 10, 64)
		if err != nil {
			continue
		}
		starts = append(starts, start)
	}
	return starts, nil
}
