// Package nfsmount reads the options of NFS mounts and finds those that are dangerous for a volume,
// for plugins of products that are mounted by NFS.
package nfsmount

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Mount is one NFS mount of this machine.
type Mount struct {
	Server  string            // host and path, as given to mount(8)
	Options map[string]string // of the file system; "" for options without a value
}

// ErrNotNFS means that another file system is mounted.
var ErrNotNFS = errors.New("is not an NFS mount")

// Find returns the mount that is visible at a path.
func Find(path string) (Mount, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return Mount{}, err
	}
	defer f.Close()
	return find(f, path)
}

// unescape undoes the kernel's escapes of white space.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// find reads lines of
//
//	36 35 0:98 /root /mount options [tag…] - type source superoptions
//
// of which the last at a path is the one on top.
func find(table io.Reader, path string) (Mount, error) {
	found, err := Mount{}, fmt.Errorf("%s: %w", path, ErrNotNFS)
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		left, right, _ := strings.Cut(lines.Text(), " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if len(l) < 5 || len(r) < 3 || unescape.Replace(l[4]) != path {
			continue
		}
		if r[0] != "nfs" && r[0] != "nfs4" {
			found, err = Mount{}, fmt.Errorf("%s: %s %w", path, r[0], ErrNotNFS)
			continue
		}
		found, err = Mount{Server: unescape.Replace(r[1]), Options: options(r[2])}, nil
	}
	if lines.Err() != nil {
		return Mount{}, lines.Err()
	}
	return found, err
}

func options(text string) map[string]string {
	out := map[string]string{}
	for o := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(o, "=")
		out[name] = unescape.Replace(value)
	}
	return out
}

// Version returns the version of the protocol: "3", "4.2".
func (m Mount) Version() string { return m.Options["vers"] }

// Warnings returns reasons not to store users' files on this mount, as text for people.
func (m Mount) Warnings() []string {
	var out []string
	has := func(name string) bool { _, ok := m.Options[name]; return ok }
	if has("soft") || has("softerr") {
		out = append(out, "mounted soft: data that a slow server has not accepted is lost; mount hard")
	}
	switch m.Options["local_lock"] {
	case "", "none", "posix":
	default:
		out = append(out, "locks apply only on this machine, so two storage proxies could write one upload; mount without nolock and local_lock")
	}
	if has("nocto") {
		out = append(out, "mounted nocto: other machines' writes may not be seen after they closed the file")
	}
	if m.Version() == "2" {
		out = append(out, "NFS version 2: files end at 2 GiB")
	}
	return out
}

// Shown returns the options to show.
func (m Mount) Shown() map[string]string {
	out := map[string]string{"server": m.Server, "version": m.Version()}
	for _, name := range []string{"proto", "sec", "rsize", "wsize", "timeo", "retrans", "nconnect", "local_lock"} {
		if v := m.Options[name]; v != "" {
			out[name] = v
		}
	}
	return out
}
