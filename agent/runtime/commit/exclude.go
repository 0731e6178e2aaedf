package commit

import (
	"path"
	"slices"
	"strings"

	"github.com/berthhq/berth/agent/mount"
	"github.com/berthhq/berth/agent/runner/peer"
)

// The files that never become part of an image, besides the places of all mounts. Paths are those in
// the container, without the leading slash.
var (
	// injected are the places where Berth puts files, also in sessions that do not have all of them.
	injected = []string{
		"opt/berth", "etc/hostname", "etc/hosts", "etc/resolv.conf",
		relative(mount.Work), relative(peer.Config), relative(peer.Job),
	}
	// volatile are directories whose contents belong to running processes: sockets, locks, pid files
	// and the scratch space of apps and SSH.
	volatile = []string{"tmp", "var/tmp", "run", "var/run", "dev", "proc", "sys"}
	// credentials are names of files and directories with keys and tokens of a user, in any directory.
	credentials = []string{
		".ssh", ".gnupg", ".aws", ".azure", ".netrc", ".git-credentials", ".pypirc", ".pgpass", ".my.cnf",
		".docker/config.json", ".kube/config", ".config/gcloud", ".config/gh/hosts.yml", ".config/rclone",
		".cache/huggingface/token", ".huggingface/token", ".kaggle/kaggle.json", ".local/share/jupyter/runtime",
	}
	// history are names of files in which programs record what a user typed, in any directory.
	history = []string{
		".bash_history", ".zsh_history", ".zhistory", ".ash_history", ".sh_history", ".history", ".histfile", ".fish_history",
		".local/share/fish/fish_history", ".python_history", ".node_repl_history", ".Rhistory", ".psql_history",
		".mysql_history", ".sqlite_history", ".rediscli_history", ".lesshst", ".viminfo", ".wget-hsts",
		".ipython/profile_default/history.sqlite", ".local/share/jupyter/nbsignatures.db",
	}
)

// exclusion decides which paths stay out of an image.
type exclusion struct {
	at    map[string]bool // paths
	named map[string]bool // paths of one or more names, in any directory
	depth int             // names in the longest of named
}

// newExclusion returns the exclusion of a container with the mounts.
func newExclusion(mounts []string) *exclusion {
	e := &exclusion{at: map[string]bool{}, named: map[string]bool{}}
	for _, p := range slices.Concat(injected, volatile, mounts) {
		if p = relative(p); p != "" {
			e.at[p] = true
		}
	}
	for _, n := range slices.Concat(credentials, history) {
		e.named[n] = true
		e.depth = max(e.depth, strings.Count(n, "/")+1)
	}
	return e
}

// drops reports whether a path and everything below it stays out of the image. The caller has asked
// about the directories above it.
func (e *exclusion) drops(p string) bool {
	if e.at[p] {
		return true
	}
	for end, n := p, 0; n < e.depth; n++ {
		i := strings.LastIndexByte(end, '/')
		if e.named[p[i+1:]] {
			return true
		}
		if i < 0 {
			return false
		}
		end = end[:i]
	}
	return false
}

// relative returns a clean path without the leading slash; "" is the root.
func relative(p string) string { return strings.TrimPrefix(path.Clean("/"+p), "/") }
