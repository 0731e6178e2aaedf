package sshproxy

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sshd starts OpenSSH's server on a port, and returns a configuration of its clients.
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

// BenchmarkBesideOpenSSH compares the gateway and the runner with OpenSSH's server on this machine,
// with OpenSSH's clients and one cipher.
func BenchmarkBesideOpenSSH(b *testing.B) {
	w := newWorld(b)
	servers := []struct{ name, config string }{{"gateway", w.config("User train", "Ciphers aes128-gcm@openssh.com")}, {"OpenSSH", w.sshd(b)}}
	src := filepath.Join(b.TempDir(), "src")
	const size = 256 << 20
	if err := os.WriteFile(src, make([]byte, size), 0o600); err != nil {
		b.Fatal(err)
	}
	must := func(argv ...string) {
		b.Helper()
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			b.Fatalf("%q: %v %s", argv, err, out)
		}
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
			for b.Loop() {
				must("scp", "-q", "-s", "-F", s.config, src, "gw:"+src+".up")
			}
		})
		b.Run("get/"+s.name, func(b *testing.B) {
			b.SetBytes(size)
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
		})
	}
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
