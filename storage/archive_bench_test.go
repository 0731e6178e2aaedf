package storage_test

import (
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berthhq/berth/storage/storagetest"
)

// BenchmarkArchive packs 128 MiB. Half of it cannot be compressed, and half is text: Go's own
// source.
func BenchmarkArchive(b *testing.B) {
	h := storagetest.New(b)
	h.Write("d/random", string(storagetest.Random(64<<20)))
	h.Write("d/text", source(b, 64<<20))
	tk := h.Ticket("archive", "d", 0)
	archive := func(format string) func() {
		return func() {
			resp := h.Get("/archive?format=" + format + "&ticket=" + tk)
			defer resp.Body.Close()
			n, err := io.Copy(io.Discard, resp.Body)
			if err != nil || resp.StatusCode != 200 {
				b.Fatal(resp.Status, err)
			}
			b.ReportMetric(float64(n)/(128<<20), format+"-size")
		}
	}
	compare := func(format, name, program string, args ...string) {
		b.Run(format+"-"+name, func(b *testing.B) {
			if _, err := exec.LookPath(program); err != nil {
				b.Skip(err)
			}
			inTurn(b, side{name: "berth", run: archive(format)}, side{name: name, run: func() { bare(b, h.Path, program, args...) }})
		})
	}
	compare("zip", "zip-1", "zip", "-1", "-q", "-r", "-", "d")
	compare("zip", "zip-0", "zip", "-0", "-q", "-r", "-", "d")
	compare("zip", "bsdtar", "bsdtar", "--format=zip", "--options=zip:compression-level=1", "-c", "-f", "-", "d")
	compare("tar.zst", "bsdtar", "bsdtar", "--zstd", "--options=zstd:compression-level=1", "-c", "-f", "-", "d")
	compare("tar.zst", "tar", "tar", "--use-compress-program=zstd -1", "-c", "-f", "-", "d")
}

// source returns this number of bytes of Go's source, repeated if there are not enough.
func source(b *testing.B, size int) string {
	b.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Skip("without Go: ", err)
	}
	var text []byte
	for len(text) < size {
		before := len(text)
		err := filepath.WalkDir(filepath.Join(strings.TrimSpace(string(root)), "src"), func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() || filepath.Ext(path) != ".go" {
				return err
			}
			raw, err := os.ReadFile(path)
			text = append(text, raw...)
			return err
		})
		if err != nil || len(text) == before {
			b.Skip("without Go's source: ", err)
		}
	}
	return string(text[:size])
}
