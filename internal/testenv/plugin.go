package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// plugins has a builder for each plugin that the test process has asked for.
var plugins sync.Map

// Plugin returns the path of a plugin of this repository, such as "volume/vfs". It is built
// once for the test process.
func Plugin(t testing.TB, name string) string {
	t.Helper()
	build, _ := plugins.LoadOrStore(name, sync.OnceValues(func() (string, error) { return buildPlugin(name) }))
	path, err := build.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func buildPlugin(name string) (string, error) {
	w, err := workPlace()
	if err != nil {
		return "", err
	}
	path := filepath.Join(w.dir, "plugins", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	out, err := exec.Command("go", "build", "-o", path, "github.com/berthhq/berth/plugins/"+name).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build plugin %s: %w: %s", name, err, out)
	}
	return path, nil
}
