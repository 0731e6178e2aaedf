package registry

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/berthhq/berth/internal/wholefile"
)

// ReaderName is the user name that belongs to the password.
const ReaderName = "berth"

// ReaderPassword returns the password for readers of the registry in dir. The first call creates
// it; only the owner of the directory can read it.
func ReaderPassword(dir string) (string, error) {
	path := filepath.Join(dir, "password")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		password := rand.Text()
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", fmt.Errorf("store the registry's password: %w", err)
		}
		if err := wholefile.Write(path, []byte(password+"\n")); err != nil {
			return "", fmt.Errorf("store the registry's password: %w", err)
		}
		return password, nil
	}
	if err != nil {
		return "", fmt.Errorf("read the registry's password: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// Require makes the registry accept only network clients with the password. Call it before Serve.
func (r *Registry) Require(password string) { r.password = password }

// known reports whether a request has the password.
func (r *Registry) known(req *http.Request) bool {
	if r.password == "" {
		return true
	}
	name, password, ok := req.BasicAuth()
	return ok && name == ReaderName && subtle.ConstantTimeCompare([]byte(password), []byte(r.password)) == 1
}
