package peer

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/pem"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
)

// SecretSize is the number of bytes of a session's secret.
const SecretSize = 32

// Member is one kernel of a session.
type Member struct {
	Hostname string
	Slots    int // default number of processes that MPI programs start there
}

// Files are the files of a session's kernels. Every kernel of a session has the same files, also
// after a restart.
type Files struct {
	Secret  []byte // of the session; empty: no keys, and no SSH between the kernels
	Members []Member
}

// keys derives the key pair of the clients and the one of the servers.
func keys(secret []byte) (user, host ed25519.PrivateKey, err error) {
	if len(secret) != SecretSize {
		return nil, nil, fmt.Errorf("the secret of the session has %d bytes, not %d", len(secret), SecretSize)
	}
	derive := func(use string) (ed25519.PrivateKey, error) {
		seed, err := hkdf.Key(sha256.New, secret, nil, "berth session ssh "+use, ed25519.SeedSize)
		if err != nil {
			return nil, fmt.Errorf("derive the %s key of the session: %w", use, err)
		}
		return ed25519.NewKeyFromSeed(seed), nil
	}
	if user, err = derive("user"); err != nil {
		return nil, nil, err
	}
	host, err = derive("host")
	return user, host, err
}

// Write replaces the files in a directory. Only root can read the keys; the caller changes the
// owner of the files that Keys returns to the user of the container.
func (f Files) Write(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	texts := map[string]string{Hostfile: f.list("%s slots=%d\n"), Machinefile: f.list("%s:%d\n")}
	if len(f.Secret) > 0 {
		user, host, err := keys(f.Secret)
		if err != nil {
			return err
		}
		if err := writeKey(filepath.Join(dir, UserKey), user); err != nil {
			return err
		}
		if err := writeKey(filepath.Join(dir, hostKey), host); err != nil {
			return err
		}
		public, err := ssh.NewPublicKey(host.Public())
		if err != nil {
			return err
		}
		texts[knownHosts] = alias + " " + string(ssh.MarshalAuthorizedKey(public))
		texts[sshConfig] = f.config()
	}
	for name, text := range texts {
		if err := write(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Keys returns the paths of the private keys in a directory, or nil without a secret.
func (f Files) Keys(dir string) []string {
	if len(f.Secret) == 0 {
		return nil
	}
	return []string{filepath.Join(dir, UserKey), filepath.Join(dir, hostKey)}
}

// SSHConfig returns the path of the client's configuration in a directory, "" without a secret.
func (f Files) SSHConfig(dir string) string {
	if len(f.Secret) == 0 {
		return ""
	}
	return filepath.Join(dir, sshConfig)
}

// list returns a line for each kernel.
func (f Files) list(format string) string {
	var b strings.Builder
	for _, m := range f.Members {
		fmt.Fprintf(&b, format, m.Hostname, m.Slots)
	}
	return b.String()
}

// config returns the configuration of OpenSSH's client for the kernels. It applies to no other host.
func (f Files) config() string {
	var names []string
	for _, m := range f.Members {
		names = append(names, m.Hostname)
	}
	return fmt.Sprintf(`# The containers of this session.
Host %s
    Port %d
    IdentityFile %s
    IdentitiesOnly yes
    PreferredAuthentications publickey
    BatchMode yes
    HostKeyAlias %s
    UserKnownHostsFile %s
    StrictHostKeyChecking yes
    CheckHostIP no
    UpdateHostKeys no
    LogLevel ERROR
`, strings.Join(names, " "), Port, filepath.Join(Dir, UserKey), alias, filepath.Join(Dir, knownHosts))
}

func writeKey(path string, key ed25519.PrivateKey) error {
	block, err := ssh.MarshalPrivateKey(key, "berth session")
	if err != nil {
		return fmt.Errorf("encode %s: %w", filepath.Base(path), err)
	}
	return write(path, pem.EncodeToMemory(block), 0o400)
}

// write creates a file with a mode, regardless of the umask.
func write(path string, data []byte, mode fs.FileMode) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Chmod(mode)
	}
	if failed := file.Close(); err == nil {
		err = failed
	}
	return err
}
