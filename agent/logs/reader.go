package logs

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// Reader reads the log in a directory. Offsets count all bytes that were ever written. It can run
// concurrently with a Writer in another process.
type Reader struct {
	dir    string
	offset int64
	file   *os.File
	start  int64
}

// NewReader returns a Reader that starts at the offset, or at the oldest stored byte if the offset
// was removed already.
func NewReader(dir string, offset int64) *Reader {
	return &Reader{dir: dir, offset: max(offset, 0)}
}

// Offset returns the offset of the next Read.
func (r *Reader) Offset() int64 { return r.offset }

// Read returns consecutive bytes of the log, and io.EOF if there are no more at present. If bytes
// were removed before they were read, Read continues after the gap: the data starts at Offset minus
// the number of bytes read.
func (r *Reader) Read(p []byte) (int, error) {
	for {
		if r.file != nil {
			n, err := r.file.ReadAt(p, r.offset-r.start)
			if n > 0 {
				r.offset += int64(n)
				return n, nil
			}
			if err != nil && !errors.Is(err, io.EOF) {
				return 0, err
			}
		}
		more, err := r.next()
		if err != nil {
			return 0, err
		}
		if !more {
			return 0, io.EOF
		}
	}
}

// next opens the file that contains the offset, unless it is open already. The writer starts a new
// file only when the old one is complete, so a reader at the end of a file misses nothing by
// opening the next one.
func (r *Reader) next() (bool, error) {
	for {
		starts, err := segments(r.dir)
		if errors.Is(err, os.ErrNotExist) || len(starts) == 0 {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		pick := starts[0]
		for _, s := range starts {
			if s <= r.offset {
				pick = s
			}
		}
		if r.file != nil && pick == r.start {
			return false, nil
		}
		f, err := os.Open(segment(r.dir, pick))
		if errors.Is(err, os.ErrNotExist) {
			continue // removed since the listing
		}
		if err != nil {
			return false, err
		}
		r.Close()
		r.file, r.start = f, pick
		r.offset = max(r.offset, pick)
		return true, nil
	}
}

// Close closes the open file.
func (r *Reader) Close() {
	if r.file != nil {
		r.file.Close()
		r.file = nil
	}
}

// End returns the offset after the last stored byte.
func End(dir string) (int64, error) {
	starts, err := segments(dir)
	if errors.Is(err, os.ErrNotExist) || len(starts) == 0 {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	last := starts[len(starts)-1]
	st, err := os.Stat(segment(dir, last))
	if errors.Is(err, os.ErrNotExist) {
		return last, nil
	}
	if err != nil {
		return 0, err
	}
	return last + st.Size(), nil
}

// Tail returns the offset at which the last lines begin, or the oldest stored byte if there are
// fewer. An incomplete last line counts as a line.
func Tail(dir string, lines int64) (int64, error) {
	starts, err := segments(dir)
	if errors.Is(err, os.ErrNotExist) || len(starts) == 0 {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	first := true
	for i := len(starts) - 1; i >= 0; i-- {
		offset, found, err := tailFile(segment(dir, starts[i]), &lines, &first)
		if errors.Is(err, os.ErrNotExist) {
			break
		}
		if err != nil {
			return 0, err
		}
		if found {
			return starts[i] + offset, nil
		}
	}
	return starts[0], nil
}

// tailFile walks through one file backwards and subtracts its line ends from lines.
func tailFile(name string, lines *int64, first *bool) (int64, bool, error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return 0, false, err
	}
	buf := make([]byte, 64<<10)
	for end := st.Size(); end > 0; {
		begin := max(end-int64(len(buf)), 0)
		part := buf[:end-begin]
		if _, err := f.ReadAt(part, begin); err != nil {
			return 0, false, err
		}
		for n := len(part); n > 0; {
			at := bytes.LastIndexByte(part[:n], '\n')
			if at < 0 {
				break
			}
			// The line end at the end of the log does not start another line.
			if !*first || at != len(part)-1 {
				*lines--
				if *lines == 0 {
					return begin + int64(at) + 1, true, nil
				}
			}
			*first = false
			n = at
		}
		*first = false
		end = begin
	}
	return 0, false, nil
}
