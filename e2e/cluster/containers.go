package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Containers tells for every kernel that has a process on this machine the names
// of the agents below whose cgroups it lives: what there is, anyone who says what.
func (s *Spread) Containers() (map[string][]string, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, err
	}
	found := map[string][]string{}
	for _, f := range files {
		text, _ := os.ReadFile(f) // it may have ended
		for i, agent := range s.agents {
			_, rest, ok := strings.Cut(string(text), "/berth/"+agent+"/")
			if !ok {
				continue
			}
			kernel, _, _ := strings.Cut(rest, "\n")
			kernel, _, _ = strings.Cut(kernel, "/")
			if name := s.Agents[i].name; !slices.Contains(found[kernel], name) {
				found[kernel] = append(found[kernel], name)
			}
		}
	}
	return found, nil
}
