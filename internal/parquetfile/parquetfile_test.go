package parquetfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/berthhq/berth/internal/parquetfile"
)

func TestRowsAreRead(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	w, err := parquetfile.New(&file, []string{"user", "day"}, []string{"hours"})
	if err != nil {
		t.Fatal(err)
	}
	const rows = 4_500 // three row groups
	for i := range rows {
		if err := w.Write([]string{fmt.Sprintf("user-%d", i%7), "=1"}, []float64{float64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	type row struct {
		User  string  `parquet:"user"`
		Day   string  `parquet:"day"`
		Hours float64 `parquet:"hours"`
	}
	got, err := parquet.Read[row](bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil || len(got) != rows {
		t.Fatalf("%d rows, %v", len(got), err)
	}
	for i, r := range got {
		if r != (row{fmt.Sprintf("user-%d", i%7), "=1", float64(i)}) {
			t.Fatalf("row %d is %+v", i, r)
		}
	}
}

func TestWrongRows(t *testing.T) {
	t.Parallel()
	if _, err := parquetfile.New(io.Discard, []string{"a"}, []string{"a"}); err == nil {
		t.Error("two columns with one name")
	}
	w, err := parquetfile.New(io.Discard, []string{"a"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write([]string{"1", "2"}, nil); err == nil {
		t.Error("a row with two texts for one column")
	}
	broken, err := parquetfile.New(brokenWriter{}, []string{"a"}, nil)
	if err == nil {
		err = errors.Join(broken.Write([]string{"1"}, nil), broken.Close())
	}
	if err == nil {
		t.Error("a disk that is full is not reported")
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space") }

// BenchmarkMillionRows writes a million rows with different texts and reports the memory.
func BenchmarkMillionRows(b *testing.B) {
	for b.Loop() {
		w, err := parquetfile.New(io.Discard, []string{"session", "session_name", "user", "slot", "exact"}, []string{"slot_seconds"})
		if err != nil {
			b.Fatal(err)
		}
		most := uint64(0)
		for i := range 1_000_000 {
			err := w.Write([]string{fmt.Sprintf("01a21f84-352a-7e6f-8eb0-%012d", i), fmt.Sprintf("train-%d", i), fmt.Sprintf("user-%d@example.org", i%1000), "cpu", fmt.Sprint(i)}, []float64{float64(i)})
			if err != nil {
				b.Fatal(err)
			}
			if i%1_000 == 0 {
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapAlloc)
			}
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(most)/(1<<20), "MiB-heap")
	}
}
