// Package sshserver is the common part of Berth's SSH servers (the SFTP server of the storage
// proxy, and the SSH server of the gateway): the file of the host key, the algorithms, and the
// guard that limits connections and guesses.
package sshserver

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/internal/wholefile"
)

// HostKeys reads the host keys, which only their owner can read, or generates them. The first one,
// at path, is an Ed25519 key, which people compare. The second one, in a file beside it with
// "ecdsa" in place of "ed25519", is an ECDSA key for clients that do not support Ed25519, such as
// those limited to FIPS 140 and Microsoft's dev tunnels. Clients refuse a host whose key has
// changed.
func HostKeys(path string) ([]ssh.Signer, error) {
	dir, file := filepath.Split(path)
	first, err := hostKey(path, func() (crypto.PrivateKey, error) {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	})
	if err != nil {
		return nil, err
	}
	second, err := hostKey(filepath.Join(dir, strings.Replace(file, "ed25519", "ecdsa", 1)), func() (crypto.PrivateKey, error) {
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	})
	return []ssh.Signer{first, second}, err
}

func hostKey(path string, generate func() (crypto.PrivateKey, error)) (ssh.Signer, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeKey(path, generate); err != nil {
			return nil, err
		}
		info, err = os.Stat(path)
	}
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("%s has the mode %04o instead of 0600, so others may have read it; remove the file to generate another key", path, mode)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	key, err := ssh.ParsePrivateKey(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

// makeKey generates a key and writes the file atomically.
func makeKey(path string, generate func() (crypto.PrivateKey, error)) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	private, err := generate()
	if err != nil {
		return err
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return err
	}
	return wholefile.Write(path, pem.EncodeToMemory(block))
}

// Config returns the configuration of a server with the algorithms that it offers. The caller adds
// the login methods.
func Config(host []ssh.Signer) *ssh.ServerConfig {
	c := &ssh.ServerConfig{
		Config: ssh.Config{
			KeyExchanges: []string{ssh.KeyExchangeMLKEM768X25519, ssh.KeyExchangeCurve25519, ssh.KeyExchangeECDHP256, ssh.KeyExchangeECDHP384},
			// The client chooses the cipher. OpenSSH would choose ChaCha20-Poly1305, which
			// costs twice as much as AES in Go.
			Ciphers: []string{ssh.CipherAES128GCM, ssh.CipherAES256GCM, ssh.CipherAES128CTR, ssh.CipherAES256CTR},
			MACs:    []string{ssh.HMACSHA256ETM, ssh.HMACSHA512ETM},
		},
		PublicKeyAuthAlgorithms: []string{
			ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
			ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512,
		},
		ServerVersion: "SSH-2.0-Berth", MaxAuthTries: MaxTries,
	}
	for _, key := range host {
		c.AddHostKey(key)
	}
	return c
}
