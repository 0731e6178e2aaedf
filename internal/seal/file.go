package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/containerd/errdefs"
)

const fileName = "seal.keys"

func pathIn(dir string) string { return filepath.Join(dir, fileName) }

// ensure creates a ring with one key in dir if there is none.
func ensure(dir string) error {
	path := pathIn(dir)
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	// link(2) does not replace a file, so of two processes that start at once, one wins.
	err := write(path, []string{newLine()}, os.Link)
	if err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("keep %s: %w", path, err)
	}
	return nil
}

// Add adds a new key to the ring in dir, unless there are several already: then an earlier change
// of keys continues. From now on, the new key encrypts; older ones still decrypt.
func Add(dir string) error {
	lines, err := readLines(pathIn(dir))
	if err != nil || len(lines) > 1 {
		return err
	}
	return write(pathIn(dir), append(lines, newLine()), os.Rename)
}

// Retire leaves only the newest key in the ring in dir.
func Retire(dir string) error {
	lines, err := readLines(pathIn(dir))
	if err != nil || len(lines) < 2 {
		return err
	}
	return write(pathIn(dir), lines[len(lines)-1:], os.Rename)
}

func readLines(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read key ring: %w", err)
	}
	return strings.Fields(string(text)), nil
}

func parse(path string, lines []string) (keys []key, err error) {
	for i, line := range lines {
		raw, err := base64.RawStdEncoding.DecodeString(line)
		if err != nil || len(raw) != idBytes+keyBytes {
			return nil, fmt.Errorf("%s: line %d is not a key: %w", path, i+1, errdefs.ErrFailedPrecondition)
		}
		block, err := aes.NewCipher(raw[idBytes:])
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key{id: [idBytes]byte(raw[:idBytes]), aead: aead})
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s has no key: %w", path, errdefs.ErrFailedPrecondition)
	}
	return keys, nil
}

func newLine() string {
	raw := make([]byte, idBytes+keyBytes)
	rand.Read(raw) // never fails
	return base64.RawStdEncoding.EncodeToString(raw)
}

// write replaces a ring atomically and durably, because values that its keys encrypt are lost
// without it.
func write(path string, lines []string, place func(from, to string) error) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".seal-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.WriteString(strings.Join(lines, "\n") + "\n")
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	if err := place(tmp.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
