package storage_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
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

// Every benchmark stands beside a bare one of the same work in the same run:
// compare the ratios, not the figures.
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
		})
	}
}

// servers are a proxy and nginx, each a process of its own, that serve the
// folder's files.
func (h *host) servers(b *testing.B) map[string]server {
	h.stop()
	cmd := h.startChild()
	b.Cleanup(func() { h.kill(cmd) })
	all := map[string]server{"berth": {cmd.Process.Pid, func(name string) string {
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
	all["nginx"] = server{bare.Process.Pid, func(name string) string { return "http://127.0.0.1:18467/" + name }}
	eventually(b, 10*time.Second, "nginx serves", func() bool {
		resp, err := http.Get(all["nginx"].url("small0"))
		if err == nil {
			resp.Body.Close()
		}
		return err == nil && resp.StatusCode == 200
	})
	return all
}

type server struct {
	pid int
	url func(name string) string
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
	fetch := func(b *testing.B, url string, want int64) {
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
	for name, s := range servers {
		b.Run("256MiB/"+name, func(b *testing.B) {
			b.SetBytes(benchSize)
			before := s.cpu(b)
			for b.Loop() {
				fetch(b, s.url("large"), benchSize)
			}
			b.ReportMetric((s.cpu(b)-before).Seconds()*1e3/float64(b.N), "cpu-ms/op")
		})
		// Ranges and files that are read again come with a ticket that the proxy has
		// seen; files of a tree each with a new one.
		for what, fresh := range map[string]bool{"16KiB/": false, "16KiB-once/": true} {
			b.Run(what+name, func(b *testing.B) {
				const connections, each = 8, 256
				urls := make([]string, small)
				name := func(i int) string { return s.url(fmt.Sprintf("small%d", i%small)) }
				for i := range urls {
					urls[i] = name(i)
				}
				before := s.cpu(b)
				for b.Loop() {
					if fresh {
						b.StopTimer()
						urls = make([]string, connections*each)
						for i := range urls {
							urls[i] = name(i)
						}
						b.StartTimer()
					}
					var wg sync.WaitGroup
					for c := range connections {
						wg.Go(func() {
							for i := range each {
								fetch(b, urls[(c*each+i)%len(urls)], 16<<10)
							}
						})
					}
					wg.Wait()
				}
				files := float64(b.N * connections * each)
				b.ReportMetric(files/b.Elapsed().Seconds(), "files/s")
				b.ReportMetric(float64((s.cpu(b)-before).Microseconds())/files, "cpu-us/file")
			})
		}
	}
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
		for b.Loop() {
			if found, _ := h.search("", "f000123", 1000); len(found) != 1 {
				b.Fatal(found)
			}
		}
	})
	b.Run("find", func(b *testing.B) {
		for b.Loop() {
			if out, err := exec.Command("find", h.path, "-iname", "*f000123*").Output(); err != nil || len(out) == 0 {
				b.Fatal(err)
			}
		}
	})
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			if files := h.countPages(b, ""); files != n {
				b.Fatalf("%d files", files)
			}
		}
	})
	b.Run("ls", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("ls", "-lR", h.path).Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("usage", func(b *testing.B) {
		for b.Loop() {
			if u, err := volume.Usage(context.Background(), h.path); err != nil || u.Files != int64(n) {
				b.Fatal(u, err)
			}
		}
	})
	b.Run("du", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("du", "-s", h.path).Run(); err != nil {
				b.Fatal(err)
			}
		}
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
	b.Run("clone", func(b *testing.B) {
		for k := 0; b.Loop(); k++ {
			to := &storagepb.FolderRef{Volume: "main", Scope: h.ref.Scope, Folder: fmt.Sprintf("%032x", k+1)}
			stream, err := h.api.CloneFolder(context.Background(), &storagepb.CloneFolderRequest{From: h.ref, To: to})
			if err != nil {
				b.Fatal(err)
			}
			if _, _, err := follow(b, stream); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("cp", func(b *testing.B) {
		for k := 0; b.Loop(); k++ {
			if err := exec.Command("cp", "-a", h.path, fmt.Sprintf("%s/copy%d", h.mount, k)).Run(); err != nil {
				b.Fatal(err)
			}
			unix.Sync()
		}
	})
}

// BenchmarkZip packs half that shrinks and half that does not.
func BenchmarkZip(b *testing.B) {
	h := newHost(b)
	h.write("d/random", string(random(64<<20)))
	h.write("d/text", strings.Repeat("the same line again and again, with a number\n", 64<<20/45))
	tk := h.ticket("archive", "d", 0)
	for _, format := range []string{"zip", "tar.zst"} {
		b.Run(format, func(b *testing.B) {
			b.SetBytes(128 << 20)
			for b.Loop() {
				resp := h.get("/archive?format=" + format + "&ticket=" + tk)
				n, err := io.Copy(io.Discard, resp.Body)
				if err != nil || resp.StatusCode != 200 {
					b.Fatal(resp.Status, err)
				}
				b.ReportMetric(float64(n)/(128<<20), "size")
				resp.Body.Close()
			}
		})
	}
	b.Run("zip -1", func(b *testing.B) {
		zip, err := exec.LookPath("zip")
		if err != nil {
			b.Skip(err)
		}
		b.SetBytes(128 << 20)
		for b.Loop() {
			cmd := exec.Command(zip, "-1", "-q", "-r", "-", "d")
			cmd.Dir, cmd.Stdout = h.path, io.Discard
			if err := cmd.Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
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
