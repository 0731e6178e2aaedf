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
	"net/http"
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
)

const benchSize = 256 << 20

// side is one that does what others do too.
type side struct {
	name string
	run  func()
	cpu  func() time.Duration // of its process, where that is reported too
}

// inTurn has the sides do the work in turn, five rounds and more: what else the machine
// does comes and goes. It reports the median of each, and how often it is that of the
// last one, which is bare: compare these, not the figures.
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
		bare := median(rows[len(rows)-1])
		for i, s := range sides {
			b.ReportMetric(median(rows[i]), s.name+"-"+unit)
			if i < len(sides)-1 {
				b.ReportMetric(median(rows[i])/bare, s.name+"-x-"+unit)
			}
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

// bare runs one of the machine's.
func bare(b *testing.B, dir, name string, args ...string) {
	b.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdout = dir, io.Discard
	if err := cmd.Run(); err != nil {
		b.Fatal(name, err)
	}
}

func BenchmarkUpload(b *testing.B) {
	h := newHost(b)
	data := random(benchSize)
	tus := func(chunk int) func() {
		return func() {
			tk := h.ticket("upload", "up", benchSize)
			at := h.begin(tk, benchSize)
			for off := 0; off < benchSize; off += chunk {
				part := data[off : off+chunk]
				sum := binary.BigEndian.AppendUint32(nil, crc32.Checksum(part, crc32.MakeTable(crc32.Castagnoli)))
				resp, err := h.try(context.Background(), "PATCH", at, tk, bytes.NewReader(part),
					"Upload-Offset", strconv.Itoa(off), "Upload-Checksum", "crc32c "+base64.StdEncoding.EncodeToString(sum))
				if err != nil || resp.StatusCode != 204 {
					b.Fatal(err, resp)
				}
			}
			os.Remove(filepath.Join(h.path, "up"))
		}
	}
	copied := func() {
		f, err := os.Create(filepath.Join(h.path, "copy"))
		if err == nil {
			_, err = f.Write(data)
		}
		if err := errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name())); err != nil {
			b.Fatal(err)
		}
	}
	inTurn(b, side{name: "16MiB", run: tus(16 << 20)}, side{name: "whole", run: tus(benchSize)}, side{name: "copy", run: copied})
}

// servers are a proxy and nginx, each a process of its own, that serve the
// folder's files.
func (h *host) servers(b *testing.B) []server {
	h.stop()
	cmd := h.startChild()
	b.Cleanup(func() { h.kill(cmd) })
	all := []server{{"berth", cmd.Process.Pid, func(name string) string {
		return h.http.URL + "/storage/download?ticket=" + h.ticket("download", name, 0)
	}}}
	nginx, err := exec.LookPath("/usr/sbin/nginx")
	if err != nil {
		b.Log("without nginx: ", err)
		return all
	}
	dir := b.TempDir()
	conf := fmt.Sprintf(`daemon off; master_process off; worker_processes 1; pid %s/pid; error_log %s/error;
events { worker_connections 256; }
http { access_log off; sendfile on; tcp_nopush on; client_body_temp_path %s/b; proxy_temp_path %s/p; fastcgi_temp_path %s/f; uwsgi_temp_path %s/u; scgi_temp_path %s/s;
server { listen 127.0.0.1:18467; root %s; } }`, dir, dir, dir, dir, dir, dir, dir, h.path)
	if err := os.WriteFile(filepath.Join(dir, "conf"), []byte(conf), 0o600); err != nil {
		b.Fatal(err)
	}
	bare := exec.Command(nginx, "-c", filepath.Join(dir, "conf"))
	bare.Stderr = os.Stderr
	if err := bare.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = bare.Process.Kill(); _ = bare.Wait() })
	other := server{"nginx", bare.Process.Pid, func(name string) string { return "http://127.0.0.1:18467/" + name }}
	eventually(b, "nginx serves", func() bool {
		resp, err := http.Get(other.url("small0"))
		if err == nil {
			resp.Body.Close()
		}
		return err == nil && resp.StatusCode == 200
	})
	return append(all, other)
}

type server struct {
	name string
	pid  int
	url  func(name string) string
}

// cpu is the processor time that the server's process has used.
func (s server) cpu(b *testing.B) time.Duration {
	b.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", s.pid))
	if err != nil {
		b.Fatal(err)
	}
	var sum time.Duration
	for _, thread := range threads {
		raw, err := os.ReadFile(thread)
		if err != nil {
			continue // it has ended
		}
		var ran int64
		if _, err := fmt.Sscan(string(raw), &ran); err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(ran)
	}
	return sum
}

// BenchmarkDownload reports the server's processor time, which is what differs:
// the bytes are moved by the kernel.
func BenchmarkDownload(b *testing.B) {
	h := newHost(b)
	h.write("large", string(random(benchSize)))
	const small = 64
	for i := range small {
		h.write(fmt.Sprintf("small%d", i), string(random(16<<10)))
	}
	servers := h.servers(b)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	fetch := func(url string, want int64) {
		resp, err := client.Get(url)
		if err != nil {
			b.Error(err)
			return
		}
		defer resp.Body.Close()
		if n, err := io.Copy(struct{ io.Writer }{io.Discard}, resp.Body); err != nil || n != want {
			b.Error(n, err)
		}
	}
	const connections, each = 8, 256
	name := func(i int) string { return fmt.Sprintf("small%d", i%small) }
	many := func(url func(i int) string) {
		var wg sync.WaitGroup
		for c := range connections {
			wg.Go(func() {
				for i := range each {
					fetch(url(c*each+i), 16<<10)
				}
			})
		}
		wg.Wait()
	}
	var large, again, once []side
	for _, s := range servers {
		cpu := func() time.Duration { return s.cpu(b) }
		large = append(large, side{s.name, func() { fetch(s.url("large"), benchSize) }, cpu})
		urls := make([]string, small)
		for i := range urls {
			urls[i] = s.url(name(i))
		}
		again = append(again, side{s.name, func() { many(func(i int) string { return urls[i%small] }) }, cpu})
		// A ticket costs half of what a file does, so it is signed before.
		var fresh []string
		next := 0
		for range connections * each * 64 {
			fresh = append(fresh, s.url(name(len(fresh))))
		}
		once = append(once, side{s.name, func() {
			many(func(i int) string { return fresh[(next+i)%len(fresh)] })
			next += connections * each
		}, cpu})
	}
	b.Run("256MiB", func(b *testing.B) { inTurn(b, large...) })
	// 2,048 files over 8 connections. Ranges and files that are read again come with a
	// ticket that the proxy has seen; files of a tree each with a new one.
	b.Run("16KiB", func(b *testing.B) { inTurn(b, again...) })
	b.Run("16KiB-once", func(b *testing.B) { inTurn(b, once...) })
}

// BenchmarkMemory reports the most memory that a proxy has used while a hundred
// uploads and downloads were under way.
func BenchmarkMemory(b *testing.B) {
	h := newHost(b)
	h.write("f", string(random(16<<20)))
	h.stop()
	for b.Loop() {
		cmd := h.startChild()
		idle := memoryOf(b, cmd.Process.Pid, "VmRSS")
		var wg sync.WaitGroup
		data := random(4 << 20)
		down := h.ticket("download", "f", 0)
		for i := range 50 {
			wg.Go(func() {
				resp := h.get("/download?ticket=" + down)
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			})
			wg.Go(func() {
				tk := h.ticket("upload", fmt.Sprintf("up%d", i), int64(len(data)))
				at := h.begin(tk, int64(len(data)))
				if resp := h.tus("PATCH", at, tk, bytes.NewReader(data), "Upload-Offset", "0"); resp.StatusCode != 204 {
					b.Error(resp.Status)
				}
			})
		}
		wg.Wait()
		b.ReportMetric(memoryOf(b, cmd.Process.Pid, "VmHWM"), "MiB-peak")
		b.ReportMetric(idle, "MiB-idle")
		h.kill(cmd)
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

func BenchmarkListFirstPage(b *testing.B) {
	h := newHostOn(b, memory(b))
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

// BenchmarkTree walks a million files: the proxy's search, its pages of every
// directory, and usage, beside find(1), ls(1) and du(1). BERTH_BENCH_FILES sets another
// number.
func BenchmarkTree(b *testing.B) {
	h := newHostOn(b, memory(b))
	n := 1_000_000
	if text := os.Getenv("BERTH_BENCH_FILES"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	h.fillMany(n)
	b.Run("search", func(b *testing.B) {
		inTurn(b, side{name: "berth", run: func() {
			if found, _ := h.search("", "f000123", 1000); len(found) != 1 {
				b.Fatal(found)
			}
		}}, side{name: "find", run: func() { bare(b, h.path, "find", ".", "-iname", "*f000123*") }})
	})
	b.Run("list", func(b *testing.B) {
		inTurn(b, side{name: "berth", run: func() {
			if files := h.countPages(b, ""); files != n {
				b.Fatalf("%d files", files)
			}
		}}, side{name: "ls", run: func() { bare(b, h.path, "ls", "-lR") }})
	})
	b.Run("usage", func(b *testing.B) {
		inTurn(b, side{name: "berth", run: func() {
			if u, err := volume.Usage(b.Context(), h.path); err != nil || u.Files != int64(n) {
				b.Fatal(u, err)
			}
		}}, side{name: "du", run: func() { bare(b, h.path, "du", "-s") }})
	})
}

// countPages lists a directory and all below it, page by page, and counts the files.
func (h *host) countPages(b *testing.B, path string) (files int) {
	b.Helper()
	q := &storagepb.ListFilesRequest{Folder: h.ref, Path: path, Limit: 1000}
	for {
		page, err := h.api.ListFiles(b.Context(), q)
		if err != nil {
			b.Fatal(err)
		}
		for _, f := range page.Files {
			if f.Type == storagepb.FileInfo_DIRECTORY {
				files += h.countPages(b, f.Path)
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
	h := newHost(b)
	h.fillMany(20_000)
	k := 0
	inTurn(b, side{name: "clone", run: func() {
		k++
		to := &storagepb.FolderRef{Volume: "main", Scope: h.ref.Scope, Folder: fmt.Sprintf("%032x", k)}
		stream, err := h.api.CloneFolder(context.Background(), &storagepb.CloneFolderRequest{From: h.ref, To: to})
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := follow(b, stream); err != nil {
			b.Fatal(err)
		}
	}}, side{name: "cp", run: func() {
		bare(b, h.mount, "cp", "-a", h.path, fmt.Sprintf("copy%d", k))
		unix.Sync()
	}})
}

// BenchmarkZip packs half that shrinks and half that does not.
func BenchmarkZip(b *testing.B) {
	h := newHost(b)
	h.write("d/random", string(random(64<<20)))
	h.write("d/text", strings.Repeat("the same line again and again, with a number\n", 64<<20/45))
	tk := h.ticket("archive", "d", 0)
	archive := func(format string) func() {
		return func() {
			resp := h.get("/archive?format=" + format + "&ticket=" + tk)
			defer resp.Body.Close()
			n, err := io.Copy(io.Discard, resp.Body)
			if err != nil || resp.StatusCode != 200 {
				b.Fatal(resp.Status, err)
			}
			b.ReportMetric(float64(n)/(128<<20), format+"-size")
		}
	}
	inTurn(b, side{name: "zip", run: archive("zip")}, side{name: "tar.zst", run: archive("tar.zst")},
		side{name: "zip-1", run: func() { bare(b, h.path, "zip", "-1", "-q", "-r", "-", "d") }})
}

// BenchmarkPluginCall is a scope asked for through the proxy and its plugin, and
// what the kernel needs to tell of a file system.
func BenchmarkPluginCall(b *testing.B) {
	h := newHost(b)
	q := &storagepb.ScopeRequest{Volume: "main", Scope: h.ref.Scope}
	b.Run("GetScope", func(b *testing.B) {
		for b.Loop() {
			if _, err := h.api.GetScope(context.Background(), q); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("statfs", func(b *testing.B) {
		for b.Loop() {
			var st unix.Statfs_t
			if err := unix.Statfs(h.mount, &st); err != nil {
				b.Fatal(err)
			}
		}
	})
}
