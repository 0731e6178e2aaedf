package storage_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/storage/storagetest"
)

// BenchmarkSFTP sends and fetches one large file with OpenSSH's client: over SSH from the proxy,
// which runs in the benchmark's process, and from OpenSSH's own server, which sftp runs as a child
// process over a pipe without encryption. Both servers have the file on disk when they answer.
func BenchmarkSFTP(b *testing.B) {
	const server = "/usr/lib/openssh/sftp-server"
	if _, err := os.Stat(server); err != nil {
		b.Skip("without OpenSSH's server: ", err)
	}
	h, o, address := storagetest.NewSFTP(b)
	dir := b.TempDir()
	key := filepath.Join(dir, "key")
	bare(b, dir, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		b.Fatal(err)
	}
	parsed, _, _, _, err := ssh.ParseAuthorizedKey(public)
	if err != nil {
		b.Fatal(err)
	}
	o.Set("me "+ssh.FingerprintSHA256(parsed), o.Opens["rw"])
	if err := os.WriteFile(filepath.Join(dir, "src"), storagetest.Random(benchSize), 0o600); err != nil {
		b.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(address)
	by := func(batch string, args ...string) func() {
		return func() {
			cmd := exec.Command("sftp", append([]string{"-q", "-b", "-"}, args...)...)
			cmd.Dir, cmd.Stdin = dir, strings.NewReader(batch)
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("%v\n%s", err, out)
			}
		}
	}
	berth := []string{
		"-P", port, "-i", key, "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=" + dir + "/known", "me@" + host,
	}
	there := filepath.Join(h.Path, "bare")
	for _, c := range []struct{ name, berth, bare string }{
		{"put", "put src mine/data/berth", fmt.Sprintf("put -f src %s", there)},
		{"get", "get mine/data/berth got", fmt.Sprintf("get %s got", there)},
	} {
		b.Run(c.name, func(b *testing.B) {
			inTurn(b, side{name: "berth", run: by(c.berth, berth...)}, side{name: "sftp-server", run: by(c.bare, "-D", server)})
		})
	}
}
