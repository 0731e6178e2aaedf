package commit

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	diff "github.com/containerd/containerd/v2/pkg/archive"
	"github.com/containerd/containerd/v2/pkg/archive/compression"
)

// sizeOfBench returns the MiB that a container has changed: BERTH_BENCH_COMMIT_MIB, or 256.
func sizeOfBench(b *testing.B) int {
	n, err := strconv.Atoi(os.Getenv("BERTH_BENCH_COMMIT_MIB"))
	if err != nil || n <= 0 {
		b.Log("BERTH_BENCH_COMMIT_MIB is not set: 256 MiB")
		return 256
	}
	return n
}

// fill writes files of 4 MiB into a directory. A half of each file is random, the other half is text.
func fill(b *testing.B, dir string, mib int) {
	text := make([]byte, 0, 2<<20)
	for i := 0; len(text) < 2<<20-100; i++ {
		text = fmt.Appendf(text, "line %d of a module that somebody has installed by hand\n", i)
	}
	for i := range mib / 4 {
		noise := make([]byte, 4<<20-len(text))
		_, _ = rand.Read(noise)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("file", i)), append(noise, text...), 0o600); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLayer makes a layer of changed files, beside the gzip layer that other tools make while the
// container is paused. It reports the time of the pause as a part of theirs.
func BenchmarkLayer(b *testing.B) {
	tr, mib := newTree(b), sizeOfBench(b)
	fill(b, tr.upper, mib)
	var whole, paused, gzip float64
	b.Run("zstd", func(b *testing.B) {
		b.SetBytes(int64(mib) << 20)
		for b.Loop() {
			l, err := tr.make(b, func(src *Source) { src.Pause = func(_ context.Context, f func() error) error { return f() } })
			if err != nil {
				b.Fatal(err)
			}
			paused = l.Paused.Seconds()
			b.ReportMetric(float64(l.Size)/float64(l.Raw), "compressed")
		}
		whole = b.Elapsed().Seconds() / float64(b.N)
	})
	b.Run("gzip", func(b *testing.B) {
		b.SetBytes(int64(mib) << 20)
		empty := b.TempDir()
		for b.Loop() {
			w, err := compression.CompressStream(io.Discard, compression.Gzip)
			if err != nil {
				b.Fatal(err)
			}
			if err := diff.WriteDiff(b.Context(), w, empty, tr.upper); err != nil {
				b.Fatal(err)
			}
			if err := w.Close(); err != nil {
				b.Fatal(err)
			}
		}
		gzip = b.Elapsed().Seconds() / float64(b.N)
		b.ReportMetric(whole/gzip, "zstd/gzip")
		b.ReportMetric(paused/gzip, "pause/gzip")
	})
}
