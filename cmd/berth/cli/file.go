package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/containerd/errdefs"
)

// ReadFile reads a whole file, or standard input for -.
func (a *App) ReadFile(path string) (string, error) {
	if path == "-" {
		b, err := io.ReadAll(a.In)
		return string(b), err
	}
	b, err := os.ReadFile(path)
	return string(b), err
}

// CreateFile creates a file, which must not exist yet.
func CreateFile(path string, mode os.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s is there already; it is not overwritten: %w", path, errdefs.ErrAlreadyExists)
	}
	return f, err
}

// RemoveOnError removes a useless file after an error.
func RemoveOnError(f *os.File, err *error) {
	if *err != nil {
		f.Close()
		os.Remove(f.Name())
	}
}
