package logs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, w *Writer, s string) {
	t.Helper()
	if _, err := w.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
}

// readAll reads the available output.
func readAll(t *testing.T, r *Reader) string {
	t.Helper()
	var b strings.Builder
	buf := make([]byte, 7)
	for {
		n, err := r.Read(buf)
		b.Write(buf[:n])
		if errors.Is(err, io.EOF) {
			return b.String()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestRotationKeepsOffsets(t *testing.T) {
	dir := t.TempDir()
	w, err := NewWriter(dir, 100, 2)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for i := range 100 {
		line := fmt.Sprintf("line %02d\n", i)
		all.WriteString(line)
		write(t, w, line)
	}
	whole := all.String()
	end, err := End(dir)
	if err != nil || end != int64(len(whole)) {
		t.Fatalf("end %d, %v; want %d", end, err, len(whole))
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 {
		t.Fatalf("%d files, %v; want 2", len(files), err)
	}
	for name, offset := range map[string]int64{"kept": int64(len(whole)) - 50, "end": int64(len(whole)), "dropped": 3} {
		t.Run(name, func(t *testing.T) {
			r := NewReader(dir, offset)
			defer r.Close()
			got := readAll(t, r)
			if r.Offset() != end {
				t.Errorf("reader stopped at %d, not %d", r.Offset(), end)
			}
			if want := whole[end-int64(len(got)):]; got != want {
				t.Errorf("not the end of the log: %q", got)
			}
			if offset >= end-100 && int64(len(got)) != end-offset {
				t.Errorf("read %d bytes from offset %d, want %d", len(got), offset, end-offset)
			}
			if name == "dropped" && len(got) < 100 {
				t.Errorf("only %d bytes kept", len(got))
			}
		})
	}
}

func TestReaderFollowsThroughRotation(t *testing.T) {
	dir := t.TempDir()
	w, err := NewWriter(dir, 10, 3)
	if err != nil {
		t.Fatal(err)
	}
	r := NewReader(dir, 0)
	defer r.Close()
	var got, want string
	for i := range 40 {
		s := fmt.Sprintf("%03d,", i)
		want += s
		write(t, w, s)
		got += readAll(t, r)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWriterResumes(t *testing.T) {
	dir := t.TempDir()
	for i := range 5 {
		w, err := NewWriter(dir, 8, 10)
		if err != nil {
			t.Fatal(err)
		}
		write(t, w, fmt.Sprintf("part %d\n", i))
		w.Close()
	}
	r := NewReader(dir, 0)
	defer r.Close()
	if diff := cmp.Diff("part 0\npart 1\npart 2\npart 3\npart 4\n", readAll(t, r)); diff != "" {
		t.Error(diff)
	}
}

func TestTail(t *testing.T) {
	tests := []struct {
		name, log string
		lines     int64
		want      string
	}{
		{"one", "a\nb\nc\n", 1, "c\n"},
		{"two", "a\nb\nc\n", 2, "b\nc\n"},
		{"all", "a\nb\nc\n", 3, "a\nb\nc\n"},
		{"more than there are", "a\nb\n", 9, "a\nb\n"},
		{"open last line", "a\nb\nc", 2, "b\nc"},
		{"empty", "", 3, ""},
		{"over files", strings.Repeat("12345\n", 20), 15, strings.Repeat("12345\n", 15)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			w, err := NewWriter(dir, 16, 100)
			if err != nil {
				t.Fatal(err)
			}
			write(t, w, tt.log)
			offset, err := Tail(dir, tt.lines)
			if err != nil {
				t.Fatal(err)
			}
			r := NewReader(dir, offset)
			defer r.Close()
			if diff := cmp.Diff(tt.want, readAll(t, r)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNoLogYet(t *testing.T) {
	dir := t.TempDir() + "/none"
	r := NewReader(dir, 0)
	if n, err := r.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Fatalf("read %d, %v", n, err)
	}
	if end, err := End(dir); end != 0 || err != nil {
		t.Fatalf("end %d, %v", end, err)
	}
}

// A program that writes 10 MB without a line end, including control characters, uses no more memory
// than any other, and its line is delivered in pieces.
func TestALineWithoutEnd(t *testing.T) {
	dir := t.TempDir()
	w, err := NewWriter(dir, 1<<20, 2)
	if err != nil {
		t.Fatal(err)
	}
	piece := strings.Repeat("\x1b[2J\x1b]0;title\a<script>alert(1)</script>", 1000)
	written := 0
	for written < 10<<20 {
		write(t, w, piece)
		written += len(piece)
	}
	var kept int64
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		kept += info.Size()
	}
	if kept > 3<<20 {
		t.Errorf("%d bytes are kept, in %d files", kept, len(files))
	}
	for _, lines := range []int64{1, 100} {
		from, err := Tail(dir, lines)
		if err != nil || from != int64(written)-kept {
			t.Errorf("the last %d lines begin at %d, %v; want the oldest that is kept, %d", lines, from, err, int64(written)-kept)
		}
	}
	r, buf, got := NewReader(dir, 0), make([]byte, 64<<10), int64(0)
	defer r.Close()
	for {
		n, err := r.Read(buf)
		if got += int64(n); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if got != kept || r.Offset() != int64(written) {
		t.Errorf("%d bytes up to %d, want %d up to %d", got, r.Offset(), kept, written)
	}
}
