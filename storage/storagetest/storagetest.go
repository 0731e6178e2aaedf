// Package storagetest runs a whole storage proxy for a test: a volume on a temporary directory,
// a folder on it, a manager that watches the proxy, and clients of its protocols. Only tests
// of the packages below storage import it.
package storagetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// VFS is the path of the real plugin, which Main builds.
var VFS string

// Main runs the tests of a package. A test binary that was started as a proxy or as a plugin serves
// that instead, and runs no test.
func Main(m *testing.M, plugins ...func() bool) {
	for _, serve := range plugins {
		if serve() {
			return
		}
	}
	if config := os.Getenv(childEnv); config != "" {
		fmt.Fprintln(os.Stderr, child(config))
		os.Exit(1)
	}
	dir, err := os.MkdirTemp("", "storage")
	if err != nil {
		panic(err)
	}
	VFS = filepath.Join(dir, "vfs")
	out, err := exec.Command("go", "build", "-o", VFS, "github.com/berthhq/berth/plugins/volume/vfs").CombinedOutput()
	if err != nil {
		fmt.Fprintf(os.Stderr, "build plugin: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}
