package driver

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// maxSecret limits the size of a file with a password, a token or a key.
const maxSecret = 64 << 10

// Secret is an option with the path of a file that contains a secret. The name of the option must
// end in _file. The secret is stored only in that file and by the caller of Read.
type Secret string

// Read returns the current contents of the file without surrounding white space, because a secret
// can be replaced while the plugin runs. It returns an error if other users can read the file.
func (s Secret) Read() (string, error) {
	f, err := os.OpenFile(string(s), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return "", fmt.Errorf("secret: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", fmt.Errorf("secret: %w", err)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("secret: %s is no regular file", string(s))
	case info.Mode().Perm()&0o007 != 0:
		return "", fmt.Errorf("secret: %s has the mode %#o: others must not reach it, 0600 will do", string(s), info.Mode().Perm())
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	text := strings.TrimSpace(string(raw))
	switch {
	case err != nil:
		return "", fmt.Errorf("secret: %w", err)
	case len(raw) > maxSecret:
		return "", fmt.Errorf("secret: %s is longer than %d bytes", string(s), maxSecret)
	case text == "":
		return "", fmt.Errorf("secret: %s is empty", string(s))
	}
	return text, nil
}
