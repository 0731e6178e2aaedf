package driver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

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
		return "", fmt.Errorf("secret: %s is not a regular file", string(s))
	case info.Mode().Perm()&0o007 != 0:
		return "", fmt.Errorf("secret: %s has the mode %#o: other users must not have access; use 0600", string(s), info.Mode().Perm())
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

const (
	// minHidden is the minimum length of a secret, because shorter ones occur in other texts.
	minHidden = 4
	// maxHidden limits the number of stored secrets. The first ones are always kept, because they
	// are passwords; later ones are tokens, of which the oldest have expired.
	maxHidden   = 64
	firstHidden = 8
)

// Hidden removes secrets from texts for people, because a product may repeat its input in an error.
// The zero value is ready to use.
type Hidden struct {
	mu    sync.Mutex
	came  []string // in the order of Add
	texts []string // longest first, because one can be a prefix of another
}

// Add removes secrets from all later texts, including their escaped forms in URLs and JSON.
func (h *Hidden) Add(texts ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := true // the usual case: Add is called for every request
	for _, t := range texts {
		safe, _ := json.Marshal(t) // marshaling a string cannot fail
		quoted := strconv.Quote(t)
		for _, form := range []string{t, url.QueryEscape(t), quoted[1 : len(quoted)-1], string(safe[1 : len(safe)-1])} {
			if len(form) < minHidden || slices.Contains(h.came, form) {
				continue
			}
			known = false
			if h.came = append(h.came, form); len(h.came) > maxHidden {
				h.came = slices.Delete(h.came, firstHidden, firstHidden+1)
			}
		}
	}
	if known {
		return
	}
	h.texts = slices.SortedFunc(slices.Values(h.came), func(a, b string) int { return cmp.Compare(len(b), len(a)) })
}

// Redact replaces all secrets in a text.
func (h *Hidden) Redact(text string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.texts {
		text = strings.ReplaceAll(text, t, "***")
	}
	return text
}
