package storage_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/storage/storagetest"
)

// server is a process that serves the folder's files.
type server struct {
	name string
	pid  int
	url  func(name string) string
}

// servers returns a proxy and nginx.
func servers(h *storagetest.Host, b *testing.B) []server {
	h.Stop()
	cmd := h.StartChild()
	b.Cleanup(func() { h.Kill(cmd) })
	all := []server{{"berth", cmd.Process.Pid, func(name string) string {
		return h.HTTP.URL + "/storage/download?ticket=" + h.Ticket("download", name, 0)
	}}}
	nginx, err := exec.LookPath("/usr/sbin/nginx")
	if err != nil {
		b.Log("without nginx: ", err)
		return all
	}
	dir, address := b.TempDir(), freeAddress(b)
	conf := fmt.Sprintf(`daemon off; master_process off; worker_processes 1; pid %s/pid; error_log %s/error;
events { worker_connections 256; }
http { access_log off; sendfile on; tcp_nopush on; client_body_temp_path %s/b; proxy_temp_path %s/p; fastcgi_temp_path %s/f; uwsgi_temp_path %s/u; scgi_temp_path %s/s;
server { listen %s; root %s; } }`, dir, dir, dir, dir, dir, dir, dir, address, h.Path)
	if err := os.WriteFile(filepath.Join(dir, "conf"), []byte(conf), 0o600); err != nil {
		b.Fatal(err)
	}
	pid := background(b, "http://"+address, nginx, "-c", filepath.Join(dir, "conf"))
	return append(all, server{"nginx", pid, func(name string) string { return "http://" + address + "/" + name }})
}

// background runs a server of the machine until the benchmark ends, and returns when it answers.
func background(b *testing.B, url, name string, args ...string) (pid int) {
	b.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	wait.Until(b, name+" answers", func() bool {
		resp, err := http.Get(url)
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	})
	return cmd.Process.Pid
}

// cpu returns the processor time of the server's process, including its ended threads.
func (s server) cpu(b *testing.B) time.Duration {
	b.Helper()
	const scheduled = 2 // CPUCLOCK_SCHED of clock_getcpuclockid(3)
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^s.pid<<3|scheduled), &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}

// BenchmarkDownload reports the server's processor time. The kernel moves the bytes, so only this
// time differs.
func BenchmarkDownload(b *testing.B) {
	h := storagetest.New(b)
	const small, connections, each = 64, 8, 256
	for name, size := range map[string]int{"1GiB": 1 << 30, "64MiB": 64 << 20} {
		h.Write(name, string(storagetest.Random(size)))
	}
	for i := range small {
		h.Write(fmt.Sprintf("small%d", i), string(storagetest.Random(16<<10)))
	}
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
	var huge, large, again, once []side
	for _, s := range servers(h, b) {
		cpu := func() time.Duration { return s.cpu(b) }
		huge = append(huge, side{s.name, func() { fetch(s.url("1GiB"), 1<<30) }, cpu})
		large = append(large, side{s.name, func() {
			for range 4 {
				fetch(s.url("64MiB"), 64<<20)
			}
		}, cpu})
		urls := make([]string, small)
		for i := range urls {
			urls[i] = s.url(name(i))
		}
		again = append(again, side{s.name, func() { many(func(i int) string { return urls[i%small] }) }, cpu})
		// Creating a ticket costs half as much as serving a file, so tickets are signed before.
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
	b.Run("1GiB", func(b *testing.B) { inTurn(b, huge...) })
	b.Run("4x64MiB", func(b *testing.B) { inTurn(b, large...) })
	// 2,048 files are read over 8 connections. Ranges and repeated files use a ticket that the
	// proxy has seen, and files of a tree use a new one each.
	b.Run("16KiB", func(b *testing.B) { inTurn(b, again...) })
	b.Run("16KiB-once", func(b *testing.B) { inTurn(b, once...) })
}

// freeAddress returns an address on which no process listens yet.
func freeAddress(b *testing.B) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
