package storage_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/berthhq/berth/storage/storagepb"
)

const benchSize = 256 << 20

// BenchmarkUpload and BenchmarkDownload stand beside a plain copy of the same
// size in the same run: compare the ratios, not the figures.
func BenchmarkUpload(b *testing.B) {
	h := newHost(b)
	data := random(benchSize)
	b.Run("copy", func(b *testing.B) {
		b.SetBytes(benchSize)
		for b.Loop() {
			f, err := os.Create(filepath.Join(h.path, "copy"))
			if err != nil {
				b.Fatal(err)
			}
			if _, err := f.Write(data); err != nil {
				b.Fatal(err)
			}
			if err := f.Sync(); err != nil {
				b.Fatal(err)
			}
			f.Close()
			os.Remove(f.Name())
		}
	})
	for _, chunk := range []int{16 << 20, benchSize} {
		b.Run(fmt.Sprintf("tus-%dMiB", chunk>>20), func(b *testing.B) {
			b.SetBytes(benchSize)
			for i := 0; b.Loop(); i++ {
				tk := h.ticket("upload", "up", benchSize)
				at := h.begin(tk, benchSize)
				for off := 0; off < benchSize; off += chunk {
					resp, err := h.try(context.Background(), "PATCH", at, tk, bytes.NewReader(data[off:off+chunk]), "Upload-Offset", strconv.Itoa(off))
					if err != nil || resp.StatusCode != 204 {
						b.Fatal(err, resp)
					}
				}
				os.Remove(filepath.Join(h.path, "up"))
			}
		})
	}
}

func BenchmarkDownload(b *testing.B) {
	h := newHost(b)
	h.write("f", string(random(benchSize)))
	b.Run("copy", func(b *testing.B) {
		b.SetBytes(benchSize)
		for b.Loop() {
			f, err := os.Open(filepath.Join(h.path, "f"))
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.Copy(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}); err != nil {
				b.Fatal(err)
			}
			f.Close()
		}
	})
	b.Run("http", func(b *testing.B) {
		b.SetBytes(benchSize)
		tk := h.ticket("download", "f", 0)
		for b.Loop() {
			resp := h.get("/download?ticket=" + tk)
			if n, err := io.Copy(struct{ io.Writer }{io.Discard}, resp.Body); err != nil || n != benchSize {
				b.Fatal(n, err)
			}
			resp.Body.Close()
		}
	})
}

func BenchmarkListFirstPage(b *testing.B) {
	h := newHost(b)
	for i := range 100_000 {
		h.touch(fmt.Sprintf("f%06d", i))
	}
	q := &storagepb.ListFilesRequest{Folder: h.ref, Limit: 1000}
	for b.Loop() {
		if _, err := h.api.ListFiles(context.Background(), q); err != nil {
			b.Fatal(err)
		}
	}
}
