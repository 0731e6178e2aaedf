package commit

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/berthhq/berth/agent/mount"
)

// accounts is the file to which a runtime adds the user of a session. Images are for other users too,
// so the entry stays out of them.
const accounts = "etc/passwd"

// stripAccounts removes the entries of sessions' users from the copy of the file, and reports whether
// it still differs from the image's.
func (m *maker) stripAccounts(e *entry) (bool, error) {
	text, err := os.ReadFile(e.file.path)
	if err != nil {
		return false, fmt.Errorf("read the copy of /%s: %w", e.path, err)
	}
	var before []byte
	root, st, there := m.lower.find(e.path)
	if there {
		if before, err = root.ReadFile(e.path); err != nil {
			return false, fmt.Errorf("read the image's /%s: %w", e.path, err)
		}
	}
	kept := withoutSessions(text, before)
	if there && bytes.Equal(kept, before) && st.Mode == e.stat.Mode {
		return false, nil
	}
	if len(kept) == 0 && !there {
		return false, nil
	}
	if err := os.WriteFile(e.file.path, kept, 0o600); err != nil {
		return false, full(err)
	}
	e.file.size = int64(len(kept))
	return true, nil
}

// withoutSessions removes the lines that the runtime adds, unless the image has them.
func withoutSessions(text, before []byte) []byte {
	known := map[string]bool{}
	for line := range strings.Lines(string(before)) {
		known[strings.TrimSuffix(line, "\n")] = true
	}
	var out []byte
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), ":")
		ours := len(f) == 7 && (f[0] == "work" || f[0] == "user"+f[2]) && f[1] == "x" && f[4] == "" && f[5] == mount.Work && f[6] == "/bin/sh"
		if !ours || known[strings.Join(f, ":")] {
			out = append(out, line...)
		}
	}
	// The runtime ends the last line of the image's file before it adds one.
	if trimmed := bytes.TrimSuffix(out, []byte("\n")); bytes.Equal(trimmed, before) {
		return trimmed
	}
	return out
}
