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

// resumeNote stores the location of an unfinished upload for a later run. It is a small file in the
// user's cache; without it, the file is uploaded from the start.
type resumeNote struct{ path string }

// resumeLife is how long a storage proxy keeps a partial upload.
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

// Read returns the location of the upload, or "".
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

// Write stores the location. After an error, the upload can only not be resumed.
func (n resumeNote) Write(location string) {
	if n.path != "" && os.MkdirAll(filepath.Dir(n.path), 0o700) == nil {
		_ = os.WriteFile(n.path, []byte(location+"\n"), 0o600)
	}
}

// Remove removes the note.
func (n resumeNote) Remove() {
	if n.path != "" {
		_ = os.Remove(n.path)
	}
}
