package sshproxy

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// sshd starts OpenSSH's server on a port, and returns a configuration for its clients.
func (w *world) sshd(b *testing.B) string {
	b.Helper()
	if _, err := os.Stat("/usr/sbin/sshd"); err != nil {
		b.Skip(err)
	}
	_ = os.MkdirAll("/run/sshd", 0o755)
	dir := b.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", dir+"/host").CombinedOutput(); err != nil {
		b.Fatalf("%v %s", err, out)
	}
	out, err := exec.Command("ssh-keygen", "-y", "-f", w.keyFile).Output()
	if err != nil {
		b.Fatal(err)
	}
	_ = os.WriteFile(dir+"/keys", out, 0o600)
	text := fmt.Sprintf("ListenAddress 127.0.0.1:%s\nHostKey %s/host\nAuthorizedKeysFile %s/keys\nPermitRootLogin yes\nUsePAM no\nStrictModes no\nPrintMotd no\nPidFile none\nSubsystem sftp internal-sftp\n", port, dir, dir)
	_ = os.WriteFile(dir+"/config", []byte(text), 0o600)
	cmd := exec.Command("/usr/sbin/sshd", "-D", "-f", dir+"/config")
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	w.openSSH = cmd.Process.Pid
	b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for range 100 {
		if c, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			c.Close()
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	path := filepath.Join(dir, "client")
	_ = os.WriteFile(path, []byte(fmt.Sprintf("Host *\nHostName 127.0.0.1\nPort %s\nUser root\nIdentityFile %s\nIdentitiesOnly yes\nStrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\nCiphers aes128-gcm@openssh.com\n", port, w.keyFile)), 0o600)
	return path
}

// BenchmarkBesideOpenSSH compares the gateway, the tunnel of an agent and the runner with OpenSSH's
// server on this machine, with OpenSSH's clients and one cipher.
func BenchmarkBesideOpenSSH(b *testing.B) {
	w := newWorld(b)
	w.kernel = w.tunnel()
	servers := []struct{ name, config string }{{"OpenSSH", w.sshd(b)}, {"gateway", w.config("User train", "Ciphers aes128-gcm@openssh.com")}}
	src := filepath.Join(b.TempDir(), "src")
	const size = 256 << 20
	if err := os.WriteFile(src, make([]byte, size), 0o600); err != nil {
		b.Fatal(err)
	}
	must := func(argv ...string) {
		b.Helper()
		cmd := exec.Command(argv[0], argv[1:]...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			b.Fatalf("%q: %v %s", argv, err, out)
		}
		w.clients += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	for _, s := range servers {
		b.Run("login/"+s.name, func(b *testing.B) {
			for b.Loop() {
				must("ssh", "-F", s.config, "gw", "true")
			}
		})
	}
	for _, s := range servers {
		b.Run("put/"+s.name, func(b *testing.B) {
			b.SetBytes(size)
			defer w.cost(b, s.name)()
			for b.Loop() {
				must("scp", "-q", "-s", "-F", s.config, src, "gw:"+src+".up")
			}
		})
		b.Run("get/"+s.name, func(b *testing.B) {
			b.SetBytes(size)
			defer w.cost(b, s.name)()
			for b.Loop() {
				must("scp", "-q", "-s", "-F", s.config, "gw:"+src, src+".down")
			}
		})
	}
	source, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer source.Close()
	go func() {
		for {
			c, err := source.Accept()
			if err != nil {
				return
			}
			_, _ = io.CopyN(c, zeros{}, size)
			c.Close()
		}
	}()
	for _, s := range servers {
		b.Run("forward/"+s.name, func(b *testing.B) {
			b.SetBytes(size)
			local := filepath.Join(b.TempDir(), "s")
			cmd := exec.Command("ssh", "-F", s.config, "-N", "-L", local+":"+source.Addr().String(), "gw")
			if err := cmd.Start(); err != nil {
				b.Fatal(err)
			}
			defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
			for range 200 {
				if _, err := os.Stat(local); err == nil {
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
			before, end := busy(cmd.Process.Pid), w.cost(b, s.name)
			for b.Loop() {
				c, err := net.Dial("unix", local)
				if err != nil {
					b.Fatal(err)
				}
				if n, err := io.Copy(io.Discard, c); n != size || err != nil {
					b.Fatal(n, err)
				}
				c.Close()
			}
			client := busy(cmd.Process.Pid) - before
			end()
			b.ReportMetric(client.Seconds()*1000/float64(b.N), "client-ms/op")
		})
	}
}

// cost measures the CPU time of a server for an operation. The returned function reports it.
// Clients report theirs beside it.
func (w *world) cost(b *testing.B, server string) func() {
	w.clients = 0
	own, theirs := w.busy(), tree(w.openSSH)
	return func() {
		time.Sleep(100 * time.Millisecond) // wait for the end of the server's processes
		own, theirs := (w.busy()-own-w.clients)/time.Duration(b.N), (tree(w.openSSH)-theirs)/time.Duration(b.N)
		if server == "OpenSSH" { // this process only creates and reads the data of forwards
			w.idle, own = own, theirs+w.idle
		}
		b.ReportMetric(float64((own - w.idle).Milliseconds()), "cpu-ms/op")
		if w.clients > 0 {
			b.ReportMetric(float64(w.clients.Milliseconds())/float64(b.N), "client-ms/op")
		}
	}
}

// busy returns the CPU time of this process, its clients and the runners.
func (w *world) busy() time.Duration {
	all := busy(os.Getpid())
	for _, pid := range w.runners {
		all += busy(pid)
	}
	return all
}

// tree returns the CPU time of a process and its descendants.
func tree(pid int) time.Duration {
	all := busy(pid)
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, child := range strings.Fields(string(children)) {
		n, _ := strconv.Atoi(child)
		all += tree(n)
	}
	return all
}

// busy returns the CPU time of a process and its ended children.
func busy(pid int) (all time.Duration) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+2:]))
	for _, ticks := range f[11:15] {
		n, _ := strconv.Atoi(ticks)
		all += time.Duration(n) * 10 * time.Millisecond
	}
	return all
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// BenchmarkIdleMemory reports the memory of this process for one idle connection with an open command.
// The clients are processes of their own.
func BenchmarkIdleMemory(b *testing.B) {
	w := newWorld(b)
	config := w.config("User train")
	const n = 90
	before := rss(b)
	var all []*exec.Cmd
	for range n {
		cmd := exec.Command("ssh", "-F", config, "gw", "sleep 600")
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		all = append(all, cmd)
	}
	for w.connections() < n {
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(3 * time.Second)
	b.ReportMetric(float64(rss(b)-before)/n, "KiB/connection")
	for _, cmd := range all {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

func rss(b *testing.B) (kib int) {
	b.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "VmRSS:") {
			_, _ = fmt.Sscanf(line, "VmRSS: %d kB", &kib)
		}
	}
	return kib
}
