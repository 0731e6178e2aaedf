package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func lockFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "lock")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestLockFilesOfPythonPackages(t *testing.T) {
	hash := "--hash=sha256:" + strings.Repeat("0a", 32)
	for name, c := range map[string]struct {
		text string
		good bool
	}{
		"one package":         {"six==1.17.0 " + hash, true},
		"as uv writes it":     {"# header\nsix==1.17.0 \\\n    " + hash + " \\\n    " + hash + "\n    # via dateutil\n", true},
		"no hash":             {"six==1.17.0", false},
		"one without a hash":  {"six==1.17.0 " + hash + "\npytz==2026.1\n", false},
		"a range of versions": {"six>=1.17.0 " + hash, false},
		"any patch release":   {"six==1.17.* " + hash, false},
		"a short hash":        {"six==1.17.0 --hash=sha256:0a0a", false},
		"another hash":        {"six==1.17.0 --hash=md5:" + strings.Repeat("0", 32), false},
		"an address":          {"six @ https://example.org/six.whl " + hash, false},
		"an option":           {"--index-url https://example.org\nsix==1.17.0 " + hash, false},
		"nothing":             {"# no package\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := checkPip(lockFile(t, c.text)); (err == nil) != c.good {
				t.Errorf("checkPip: %v", err)
			}
		})
	}
}

func TestLockFilesOfNodePackages(t *testing.T) {
	lock := `{"lockfileVersion": 3, "packages": {
"": {"dependencies": {"a": "1"}},
"node_modules/a": {"version": "1.0.0", "integrity": "sha512-AA==", "dependencies": {"b": "^1", "c": "^1"}},
"node_modules/a/node_modules/b": {"version": "1.2.0", "resolved": "https://registry.npmjs.org/b/-/b-1.2.0.tgz", "integrity": "sha512-AA==", "dependencies": {"c": "1"}},
"node_modules/c": {"version": "1.0.0", "integrity": "sha512-AA=="}}}`
	for name, c := range map[string]struct {
		old, new string
		good     bool
	}{
		"complete":             {"", "", true},
		"no hash":              {`"1.2.0", "resolved": "https://registry.npmjs.org/b/-/b-1.2.0.tgz", "integrity": "sha512-AA=="`, `"1.2.0"`, false},
		"a weak hash":          {`{"version": "1.0.0", "integrity": "sha512-AA=="}`, `{"version": "1.0.0", "integrity": "sha1-AA=="}`, false},
		"another origin":       {"https://registry.npmjs.org/b/-/", "git+ssh://git@example.org/", false},
		"a dependency missing": {"node_modules/c", "node_modules/d", false},
		"not found from there": {"node_modules/c", "node_modules/a/node_modules/b/node_modules/c", false},
		"an old format":        {`"lockfileVersion": 3`, `"lockfileVersion": 1`, false},
		"not JSON":             {lock, "{", false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := checkNpm(lockFile(t, strings.Replace(lock, c.old, c.new, 1))); (err == nil) != c.good {
				t.Errorf("checkNpm: %v", err)
			}
		})
	}
}
