package cluster

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Plugins tells the processes of plugins below the server by their programs' names,
// such as accelerator/mock.
func (p *Platform) Plugins() (map[string]int, error) {
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	found := map[string]int{}
	for _, dir := range processes {
		exe, err := os.Readlink(filepath.Join(dir, "exe"))
		name, ours := strings.CutPrefix(exe, p.Bin("plugins")+"/")
		if err != nil || !ours {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue
		}
		// The parent comes after the name, which may hold anything but ")" last.
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		if len(fields) > 1 && fields[0] != "Z" && fields[1] == strconv.Itoa(p.Pid()) {
			found[name], _ = strconv.Atoi(filepath.Base(dir))
		}
	}
	return found, nil
}

// KillPlugins is kill -9 of these plugins, all at once; it waits until they run again.
func (p *Platform) KillPlugins(t testing.TB, names ...string) {
	t.Helper()
	old, err := p.Plugins()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if old[name] == 0 {
			t.Fatalf("plugin %s does not run", name)
		}
		if err := syscall.Kill(old[name], syscall.SIGKILL); err != nil {
			t.Fatalf("kill plugin %s: %v", name, err)
		}
	}
	for _, name := range names {
		Eventually(t, "plugin "+name+" runs again", func() bool {
			now, err := p.Plugins()
			return err == nil && now[name] != 0 && now[name] != old[name]
		})
	}
}
