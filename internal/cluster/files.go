package cluster

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/containerd/errdefs"
)

const (
	typeKey  = "PRIVATE KEY"
	typeCert = "CERTIFICATE"
)

// encodePEM puts a key and its chain into one file, so that they always match.
func encodePEM(key *ecdsa.PrivateKey, certs ...*x509.Certificate) []byte {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err) // a P-256 key always has an encoding
	}
	var b bytes.Buffer
	_ = pem.Encode(&b, &pem.Block{Type: typeKey, Bytes: der})
	for _, c := range certs {
		_ = pem.Encode(&b, &pem.Block{Type: typeCert, Bytes: c.Raw})
	}
	return b.Bytes()
}

func readPEM(path string) (*ecdsa.PrivateKey, []*x509.Certificate, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%w: %w", errdefs.ErrNotFound, err)
	}
	if err != nil {
		return nil, nil, err
	}
	key, certs, err := decodePEM(data)
	if err == nil && (key == nil || len(certs) == 0) {
		err = errors.New("a key or certificate is missing")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w: %w", path, errdefs.ErrDataLoss, err)
	}
	return key, certs, nil
}

func decodePEM(data []byte) (key *ecdsa.PrivateKey, certs []*x509.Certificate, err error) {
	for {
		var b *pem.Block
		if b, data = pem.Decode(data); b == nil {
			return key, certs, nil
		}
		switch b.Type {
		case typeKey:
			k, err := x509.ParsePKCS8PrivateKey(b.Bytes)
			if err != nil {
				return nil, nil, err
			}
			var ok bool
			if key, ok = k.(*ecdsa.PrivateKey); !ok {
				return nil, nil, fmt.Errorf("key is %T, not ECDSA", k)
			}
		case typeCert:
			c, err := x509.ParseCertificate(b.Bytes)
			if err != nil {
				return nil, nil, err
			}
			certs = append(certs, c)
		}
	}
}

// createFile creates a file atomically; it must not exist yet.
func createFile(path string, data []byte) error {
	err := writeTemp(path, data, os.Link)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %w", errdefs.ErrAlreadyExists, err)
	}
	return err
}

// replaceFile replaces a file atomically.
func replaceFile(path string, data []byte) error { return writeTemp(path, data, os.Rename) }

func writeTemp(path string, data []byte, place func(from, to string) error) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := place(f.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

// syncDir makes changes of names in dir survive a power failure.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
