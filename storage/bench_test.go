package storage_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/plugins/volume"
	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/storagetest"
)

const benchSize = 256 << 20

// side is one of the programs that a benchmark compares.
type side struct {
	name string
	run  func()
	cpu  func() time.Duration // processor time of its process, if that is reported too
}

// inTurn runs the work of each side alternately, in at least five rounds, because the load of the
// machine changes over time. It reports the median of each side, and the median of the ratio to the
// last side, which is bare, in the same round. Compare the ratios and not the absolute values.
func inTurn(b *testing.B, sides ...side) {
	took, cpu := make([][]float64, len(sides)), make([][]float64, len(sides))
	for b.Loop() {
		for range 5 {
			for i, s := range sides {
				var before time.Duration
				if s.cpu != nil {
					before = s.cpu()
				}
				began := time.Now()
				s.run()
				took[i] = append(took[i], time.Since(began).Seconds()*1e3)
				if s.cpu != nil {
					cpu[i] = append(cpu[i], (s.cpu()-before).Seconds()*1e3)
				}
			}
		}
	}
	b.ReportMetric(0, "ns/op") // of all together
	report := func(unit string, rows [][]float64) {
		bare := rows[len(rows)-1]
		for i, s := range sides {
			b.ReportMetric(median(rows[i]), s.name+"-"+unit)
			if i == len(sides)-1 {
				break
			}
			times := make([]float64, len(bare))
			for k := range bare {
				times[k] = rows[i][k] / bare[k]
			}
			b.ReportMetric(median(times), s.name+"-x-"+unit)
		}
	}
	report("ms", took)
	if len(cpu[0]) > 0 {
		report("cpu-ms", cpu)
	}
}

func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

// bare runs a program of the machine.
func bare(b *testing.B, dir, name string, args ...string) {
	b.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdout = dir, io.Discard
	if err := cmd.Run(); err != nil {
		b.Fatal(name, err)
	}
}

func BenchmarkUpload(b *testing.B) {
	h := storagetest.New(b)
	data := storagetest.Random(benchSize)
	tus := func(chunk int) func() {
		return func() {
			tk := h.Ticket("upload", "up", benchSize)
			at := h.Begin(tk, benchSize)
			for off := 0; off < benchSize; off += chunk {
				part := data[off : off+chunk]
				sum := binary.BigEndian.AppendUint32(nil, crc32.Checksum(part, crc32.MakeTable(crc32.Castagnoli)))
				resp, err := h.Try(context.Background(), "PATCH", at, tk, bytes.NewReader(part),
					"Upload-Offset", strconv.Itoa(off), "Upload-Checksum", "crc32c "+base64.StdEncoding.EncodeToString(sum))
				if err != nil || resp.StatusCode != 204 {
					b.Fatal(err, resp)
				}
			}
			os.Remove(filepath.Join(h.Path, "up"))
		}
	}
	copied := func() {
		f, err := os.Create(filepath.Join(h.Path, "copy"))
		if err == nil {
			_, err = f.Write(data)
		}
		if err := errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name())); err != nil {
			b.Fatal(err)
		}
	}
	inTurn(b, side{name: "16MiB", run: tus(16 << 20)}, side{name: "whole", run: tus(benchSize)}, side{name: "copy", run: copied})
}

// BenchmarkMemory reports the peak memory of a proxy during a hundred uploads and downloads.
func BenchmarkMemory(b *testing.B) {
	h := storagetest.New(b)
	h.Write("f", string(storagetest.Random(16<<20)))
	h.Stop()
	for b.Loop() {
		cmd := h.StartChild()
		idle := memoryOf(b, cmd.Process.Pid, "VmRSS")
		var wg sync.WaitGroup
		data := storagetest.Random(4 << 20)
		down := h.Ticket("download", "f", 0)
		for i := range 50 {
			wg.Go(func() {
				resp := h.Get("/download?ticket=" + down)
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			})
			wg.Go(func() {
				tk := h.Ticket("upload", fmt.Sprintf("up%d", i), int64(len(data)))
				at := h.Begin(tk, int64(len(data)))
				if resp := h.Tus("PATCH", at, tk, bytes.NewReader(data), "Upload-Offset", "0"); resp.StatusCode != 204 {
					b.Error(resp.Status)
				}
			})
		}
		wg.Wait()
		b.ReportMetric(memoryOf(b, cmd.Process.Pid, "VmHWM"), "MiB-peak")
		b.ReportMetric(idle, "MiB-idle")
		h.Kill(cmd)
	}
}

func memoryOf(b *testing.B, pid int, field string) float64 {
	b.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if rest, is := strings.CutPrefix(line, field+":"); is {
			var kb float64
			if _, err := fmt.Sscanf(rest, "%f kB", &kb); err != nil {
				b.Fatal(err)
			}
			return kb / 1024
		}
	}
	b.Fatal("no " + field)
	return 0
}

// BenchmarkListFirstPage compares a page with ls(1): with -l, ls reads and sorts all names, with
// -f, it does neither. The processor time is measured in the benchmark's process and in ls.
func BenchmarkListFirstPage(b *testing.B) {
	h := storagetest.NewOn(b, storagetest.Memory(b))
	for i := range 100_000 {
		h.Touch(fmt.Sprintf("f%06d", i))
	}
	used := func(who int) func() time.Duration {
		return func() time.Duration {
			var u unix.Rusage
			if err := unix.Getrusage(who, &u); err != nil {
				b.Fatal(err)
			}
			return time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	q := &storagepb.ListFilesRequest{Folder: h.Ref, Limit: 1000}
	page := func() {
		if page, err := h.API.ListFiles(context.Background(), q); err != nil || len(page.Files) != 1000 {
			b.Fatal(len(page.GetFiles()), err)
		}
	}
	ls := func(how string) side {
		return side{"ls" + how, func() { bare(b, h.Path, "ls", how) }, used(unix.RUSAGE_CHILDREN)}
	}
	inTurn(b, side{"berth", page, used(unix.RUSAGE_SELF)}, ls("-l"), ls("-f"))
}

// BenchmarkTree walks a million files: it compares the proxy's search, its pages of every directory
// and its usage with find(1), ls(1) and du(1). BERTH_BENCH_FILES sets another number.
func BenchmarkTree(b *testing.B) {
	h := storagetest.NewOn(b, storagetest.Memory(b))
	n := 1_000_000
	if text := os.Getenv("BERTH_BENCH_FILES"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	h.FillMany(n)
	b.Run("search", func(b *testing.B) {
		inTurn(b, side{name: "berth", run: func() {
			if found, _ := h.Search("", "f000123", 1000); len(found) != 1 {
				b.Fatal(found)
			}
		}}, side{name: "find", run: func() { bare(b, h.Path, "find", ".", "-iname", "*f000123*") }})
	})
	b.Run("list", func(b *testing.B) {
		inTurn(b, side{name: "berth", run: func() {
			if files := countPages(h, b, ""); files != n {
				b.Fatalf("%d files", files)
			}
		}}, side{name: "ls", run: func() { bare(b, h.Path, "ls", "-lR") }})
	})
	b.Run("usage", func(b *testing.B) {
		inTurn(b, side{name: "berth", run: func() {
			if u, err := volume.Usage(b.Context(), h.Path); err != nil || u.Files != int64(n) {
				b.Fatal(u, err)
			}
		}}, side{name: "du", run: func() { bare(b, h.Path, "du", "-s") }})
	})
}

// countPages lists a directory and all below it, page by page, and counts the files.
func countPages(h *storagetest.Host, b *testing.B, path string) (files int) {
	b.Helper()
	q := &storagepb.ListFilesRequest{Folder: h.Ref, Path: path, Limit: 1000}
	for {
		page, err := h.API.ListFiles(b.Context(), q)
		if err != nil {
			b.Fatal(err)
		}
		for _, f := range page.Files {
			if f.Type == storagepb.FileInfo_DIRECTORY {
				files += countPages(h, b, f.Path)
			} else {
				files++
			}
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return files
		}
	}
}

// BenchmarkClone clones 20,000 small files on a disk.
func BenchmarkClone(b *testing.B) {
	h := storagetest.New(b)
	h.FillMany(20_000)
	k := 0
	inTurn(b, side{name: "clone", run: func() {
		k++
		to := &storagepb.FolderRef{Volume: "main", Scope: h.Ref.Scope, Folder: fmt.Sprintf("%032x", k)}
		stream, err := h.API.CloneFolder(context.Background(), &storagepb.CloneFolderRequest{From: h.Ref, To: to})
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := storagetest.Follow(b, stream); err != nil {
			b.Fatal(err)
		}
	}}, side{name: "cp", run: func() {
		bare(b, h.Mount, "cp", "-a", h.Path, fmt.Sprintf("copy%d", k))
		unix.Sync()
	}})
}

// BenchmarkPluginCall compares the usage of a scope, read through the proxy and its plugin, with
// the kernel's own statistics of a file system.
func BenchmarkPluginCall(b *testing.B) {
	h := storagetest.New(b)
	q := &storagepb.ScopeRequest{Volume: "main", Scope: h.Ref.Scope}
	b.Run("GetScope", func(b *testing.B) {
		for b.Loop() {
			if _, err := h.API.GetScope(context.Background(), q); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("statfs", func(b *testing.B) {
		for b.Loop() {
			var st unix.Statfs_t
			if err := unix.Statfs(h.Mount, &st); err != nil {
				b.Fatal(err)
			}
		}
	})
}
