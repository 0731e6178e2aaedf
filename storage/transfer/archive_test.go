package transfer

import (
	"io"
	"testing"
	"time"
)

// A zip creates one compressor for all of its files, because one takes 800 kB.
func TestZipMakesOneCompressor(t *testing.T) {
	p, err := newZip(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	add := func() {
		w, err := p.Add("f", listing{size: 9, at: time.Unix(1e9, 0)})
		if err == nil {
			_, err = io.WriteString(w, "012345678")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	add()
	result := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			add()
		}
	})
	if got := result.AllocedBytesPerOp(); got > 100<<10 {
		t.Errorf("%d bytes of memory for each small file", got)
	}
}
