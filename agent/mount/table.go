package mount

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// mountEntry is a line of mountinfo.
type mountEntry struct {
	id, parent uint64
	device     string
	point      string // current mount point
	readOnly   bool
}

// mounts are all mounts of a namespace by id.
type mounts map[uint64]mountEntry

// readMounts reads the mounts in the namespace of a process.
func readMounts(pid int) (table mounts, err error) {
	err = outside(func() error {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
		if err == nil {
			table, err = parseMounts(string(text))
		}
		return err
	})
	return table, err
}

// parseMounts parses /proc/PID/mountinfo.
func parseMounts(text string) (mounts, error) {
	table := mounts{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 6 {
			return nil, fmt.Errorf("mountinfo has %q", line)
		}
		m := mountEntry{device: f[2], point: unescape(f[4]), readOnly: slices.Contains(strings.Split(f[5], ","), "ro")}
		var err error
		if m.id, err = strconv.ParseUint(f[0], 10, 64); err == nil {
			m.parent, err = strconv.ParseUint(f[1], 10, 64)
		}
		if err != nil {
			return nil, fmt.Errorf("mountinfo has %q: %w", line, err)
		}
		table[m.id] = m
	}
	return table, nil
}

// unescape replaces octal escapes of the kernel, such as \040 for a space.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// tree returns a mount and all mounts below it.
func (t mounts) tree(top uint64) []uint64 {
	list := []uint64{top}
	for i := 0; i < len(list); i++ {
		for id, m := range t {
			if m.parent == list[i] && id != m.parent && !slices.Contains(list, id) {
				list = append(list, id)
			}
		}
	}
	return list
}

// below returns the mounts further down that belong to the folder of a place. It omits mounts of
// other places and everything below these.
func (t mounts) below(p Place, places []Place) (list []mountEntry) {
	other := map[uint64]bool{}
	for _, q := range places {
		if q.ID == p.ID || q.Gone {
			continue
		}
		if within := t.tree(q.ID); !slices.Contains(within, p.ID) {
			for _, id := range within {
				other[id] = true
			}
		}
	}
	for _, id := range t.tree(p.ID)[1:] {
		if m, ok := t[id]; ok && !other[id] {
			list = append(list, m)
		}
	}
	return list
}
