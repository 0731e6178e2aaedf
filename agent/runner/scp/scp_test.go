package scp

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A client cannot write outside of the target, whatever names, modes and sizes it sends.
func TestHostileClients(t *testing.T) {
	for name, messages := range map[string]string{
		"parent":               "C0644 1 ../out\nx\x00",
		"path":                 "C0644 1 a/out\nx\x00",
		"absolute":             "C0644 1 /tmp/out\nx\x00",
		"dots":                 "D0755 0 ..\nC0644 1 out\nx\x00E\n",
		"empty":                "C0644 1 \nx\x00",
		"end":                  "C0644 1 a\x00b\nx\x00",
		"negative size":        "C0644 -1 out\nx\x00",
		"size of no int":       "C0644 99999999999999999999 out\nx\x00",
		"mode":                 "C9999 1 out\nx\x00",
		"too short":            "C0644 100 out\nx",
		"no message":           "hello\n",
		"endless line":         "C" + strings.Repeat("0", 1<<20),
		"times":                "Tnever\nC0644 1 out\nx\x00",
		"directory without -r": "D0755 0 sub\nE\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "target")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			args := []string{"-t", dir}
			if name == "dots" {
				args = []string{"-rt", dir}
			}
			var out bytes.Buffer
			if code := Run(args, strings.NewReader(messages), &out); code != 1 {
				t.Errorf("exit code %d, answer %q", code, &out)
			}
			left, err := os.ReadDir(filepath.Dir(dir))
			if err != nil || len(left) != 1 {
				t.Errorf("beside the target: %v, %v", left, err)
			}
			inside, _ := os.ReadDir(dir)
			if name != "too short" && len(inside) != 0 {
				t.Errorf("inside the target: %v", inside)
			}
		})
	}
	for _, args := range [][]string{nil, {"-t"}, {"-f"}, {"-t", "a", "b"}, {"a"}, {"-t", "-f", "a"}, {"-x", "-t", "a"}} {
		if code := Run(args, strings.NewReader(""), new(bytes.Buffer)); code != 1 {
			t.Errorf("%q: exit code %d", args, code)
		}
	}
}
