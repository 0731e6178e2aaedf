package transfer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/berthhq/berth/cmd/berth/cli"
)

// resumeNote remembers where an unfinished upload lies, for a later run. It is
// one small file in the user's cache; losing it costs sending the file again.
type resumeNote struct{ path string }

// resumeLife is how long a storage proxy keeps an unfinished upload.
const resumeLife = 24 * time.Hour

func newResumeNote(a *cli.App, server, folder string, s *step) resumeNote {
	dir := a.Env("XDG_CACHE_HOME")
	if dir == "" {
		dir = filepath.Join(a.Env("HOME"), ".cache")
	}
	local, err := filepath.Abs(s.Local)
	if err != nil || !filepath.IsAbs(dir) {
		return resumeNote{}
	}
	key := fmt.Sprintf("%s\n%s\n%s\n%s\n%d\n%d", server, folder, s.Path, local, s.Size, s.modified.UnixNano())
	sum := sha256.Sum256([]byte(key))
	return resumeNote{filepath.Join(dir, "berth", "uploads", hex.EncodeToString(sum[:16]))}
}

// Read returns the upload's location, "" without one.
func (n resumeNote) Read() string {
	info, err := os.Stat(n.path)
	if err != nil || time.Since(info.ModTime()) > resumeLife {
		return ""
	}
	b, err := os.ReadFile(n.path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// Write keeps the location. An error only means that it cannot be resumed.
func (n resumeNote) Write(location string) {
	if n.path != "" && os.MkdirAll(filepath.Dir(n.path), 0o700) == nil {
		_ = os.WriteFile(n.path, []byte(location+"\n"), 0o600)
	}
}

// Remove forgets the upload.
func (n resumeNote) Remove() {
	if n.path != "" {
		_ = os.Remove(n.path)
	}
}
