// Package pushtoken makes and checks tokens that permit writing to one repository of the embedded
// registry for a short time. The manager signs one for each commit, the agent presents it as a
// password, and the registry checks it.
package pushtoken

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/wholefile"
)

// User is the user name that belongs to a token.
const User = "berth-push"

// Grant is the content of a token.
type Grant struct {
	Repository string    `json:"repository,omitempty"`
	Namespace  string    `json:"namespace,omitempty"` // every repository below it; "" = only Repository
	From       string    `json:"from,omitempty"`      // a repository whose layers can be mounted; "" = none
	Delete     bool      `json:"delete,omitempty"`
	Maintain   bool      `json:"maintain,omitempty"` // sweeps, and nothing of images
	Quota      *Quota    `json:"quota,omitempty"`
	Expires    time.Time `json:"expires"`
}

// Quota limits the bytes that pushes with a token add.
type Quota struct {
	Of   string `json:"of"` // whose limit it is, such as: project vision
	Used int64  `json:"used"`
	Max  int64  `json:"max"`
	// Blobs limits the number of blobs that the repository can have. If it is not 0, the registry itself
	// counts what the repository has, and ignores Used.
	Blobs int `json:"blobs,omitempty"`
}

// Covers reports whether the token is for a repository.
func (g Grant) Covers(repository string) bool {
	return g.Repository != "" && repository == g.Repository ||
		g.Namespace != "" && strings.HasPrefix(repository, g.Namespace+"/")
}

// Key signs tokens.
type Key []byte

// minKey is the smallest key in bytes.
const minKey = 32

// ReadKey reads a key from a file.
func ReadKey(path string) (Key, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the key of push tokens: %w", err)
	}
	key := Key(strings.TrimSpace(string(text)))
	if len(key) < minKey {
		return nil, fmt.Errorf("the key of push tokens in %s has %d characters, fewer than %d: %w", path, len(key), minKey, errdefs.ErrInvalidArgument)
	}
	return key, nil
}

// KeyIn reads the key of the registry in a directory. The first call creates it; only the owner of the
// directory can read it.
func KeyIn(dir string) (Key, error) {
	path := filepath.Join(dir, "push-key")
	if key, err := ReadKey(path); err == nil || !errors.Is(err, os.ErrNotExist) {
		return key, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("store the key of push tokens: %w", err)
	}
	if err := wholefile.Write(path, []byte(rand.Text()+rand.Text()+"\n")); err != nil {
		return nil, fmt.Errorf("store the key of push tokens: %w", err)
	}
	return ReadKey(path)
}

// Sign returns a token.
func (k Key) Sign(g Grant) (string, error) {
	text, err := json.Marshal(g)
	if err != nil {
		return "", fmt.Errorf("encode push token: %w", err)
	}
	body := base64.RawURLEncoding.EncodeToString(text)
	return body + "." + k.sum(body), nil
}

func (k Key) sum(body string) string {
	m := hmac.New(sha256.New, k)
	m.Write([]byte("berth push token " + body))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// Open checks a token and returns its content.
func (k Key) Open(token string, now time.Time) (Grant, error) {
	body, sum, ok := strings.Cut(token, ".")
	if !ok || len(k) < minKey || !hmac.Equal([]byte(sum), []byte(k.sum(body))) {
		return Grant{}, fmt.Errorf("the push token is not signed by this registry: %w", errdefs.ErrUnauthenticated)
	}
	text, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return Grant{}, fmt.Errorf("decode push token: %w: %w", err, errdefs.ErrUnauthenticated)
	}
	var g Grant
	if err := json.Unmarshal(text, &g); err != nil {
		return Grant{}, fmt.Errorf("decode push token: %w: %w", err, errdefs.ErrUnauthenticated)
	}
	if now.After(g.Expires) {
		return Grant{}, fmt.Errorf("the push token expired at %s: %w", g.Expires.UTC().Format(time.RFC3339), errdefs.ErrUnauthenticated)
	}
	return g, nil
}
