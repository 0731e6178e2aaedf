// Package exascaler simulates the program lfs of a Lustre client. Directories belong to projects,
// and quotas of projects limit bytes. Lustre has no REST interface.
//
// Shapes of arguments and outputs are those of lfs 2.12 to 2.15, from its source and from published
// outputs: KiB, a "*" behind a value above its limit, "[]" around a value that not all servers have
// reported, and a separate line for a long name. Settings:
//
//	project  "off": the file system lacks the feature project
//	ost      "inactive": one object storage target does not answer
//	fail     the error of every lfs command of a kind: "setquota: Input/output error"
package exascaler

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/berthhq/berth/internal/simulator"
)

type product struct {
	server *simulator.Server
	lfs    string

	mu       sync.Mutex
	projects map[string]uint32 // of directories
	limits   map[uint32]limit
}

// limit is the limit of a project; 0 = none.
type limit struct{ kib, inodes int64 }

// New creates the file system.
func New(a *simulator.Server) (simulator.Product, error) {
	p := &product{server: a, projects: map[string]uint32{}, limits: map[uint32]limit{}}
	var err error
	p.lfs, err = a.Command("lfs", p.run)
	return p, err
}

// Options implements simulator.Product. The disk behind it does not limit numbers of files.
func (p *product) Options() map[string]any {
	return map[string]any{"lfs": p.lfs, "file_limits": false}
}

func (p *product) ServeHTTP(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }

// wrong is how lfs ends: a text and the number of the error.
func wrong(code int, format string, args ...any) simulator.Output {
	return simulator.Output{Stderr: fmt.Sprintf(format, args...) + "\n", Code: code}
}

func (p *product) run(_ context.Context, args []string) simulator.Output {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(args) == 0 {
		return wrong(22, "lfs: no command")
	}
	if kind, text, ok := strings.Cut(p.server.Setting("fail"), ": "); ok && kind == args[0] {
		return wrong(5, "lfs %s: failed for '%s': %s", args[0], args[len(args)-1], text)
	}
	p.sweep()
	switch args[0] {
	case "df":
		return p.df(args[1:])
	case "project":
		return p.project(args[1:])
	case "quota":
		return p.quota(args[1:])
	case "setquota":
		return p.setquota(args[1:])
	}
	return wrong(22, "lfs: '%s' is not a valid command", args[0])
}

// sweep drops directories that were deleted, or deleted and created again.
func (p *product) sweep() {
	for name := range p.projects {
		if _, err := p.server.Tree.Usage(name); err != nil {
			delete(p.projects, name)
		}
	}
}

// name returns the name of a path in the tree. The tree can be mounted at several places, so a
// directory at its top is identified by its last path element.
func name(path string) string { return filepath.Base(path) }

func (p *product) df(args []string) simulator.Output {
	if len(args) != 1 {
		return wrong(22, "usage: df MOUNT")
	}
	total, used, free, err := p.server.Tree.Capacity()
	if err != nil {
		return wrong(5, "lfs df: %v", err)
	}
	row := func(out *strings.Builder, uuid, at string, share int64) {
		fmt.Fprintf(out, "%-20s %11d %11d %11d %3d%% %s%s\n", uuid, total/1024/share, used/1024/share, free/1024/share, used*100/total, args[0], at)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%-20s %11s %11s %11s %4s %s\n", "UUID", "1K-blocks", "Used", "Available", "Use%", "Mounted on")
	row(&out, "exa-MDT0000_UUID", "[MDT:0]", 16)
	row(&out, "exa-OST0000_UUID", "[OST:0]", 2)
	if p.server.Setting("ost") == "inactive" {
		fmt.Fprintf(&out, "%-20s: %s\n", "OST0001", "inactive device")
	} else {
		row(&out, "exa-OST0001_UUID", "[OST:1]", 2)
	}
	out.WriteString("\n")
	row(&out, "filesystem_summary:", "", 1)
	return simulator.Output{Stdout: out.String()}
}

// project prints the project of a directory (-d DIR), or sets it (-p ID -s DIR).
func (p *product) project(args []string) simulator.Output {
	if len(args) == 0 {
		return wrong(22, "lfs project: no arguments")
	}
	path := args[len(args)-1]
	dir := name(path)
	if dir != filepath.Base(p.server.Mount()) && !p.server.Tree.IsDir(dir) && len(dir) == 32 {
		return wrong(2, "lfs: failed to open '%s': No such file or directory", path)
	}
	if p.server.Setting("project") == "off" {
		return wrong(95, "lfs: failed to get xattr for '%s': Operation not supported", path)
	}
	switch {
	case len(args) == 2 && args[0] == "-d":
		flag := "-"
		if p.projects[dir] != 0 {
			flag = "P"
		}
		return simulator.Output{Stdout: fmt.Sprintf("%5d %s %s\n", p.projects[dir], flag, path)}
	case len(args) == 4 && args[0] == "-p" && args[2] == "-s":
		id, err := strconv.ParseUint(args[1], 10, 32)
		if err != nil {
			return wrong(22, "lfs: invalid project ID '%s'", args[1])
		}
		p.projects[dir] = uint32(id)
		if err := p.enforce(uint32(id)); err != nil {
			delete(p.projects, dir)
			return wrong(5, "lfs: failed to set xattr for '%s': %v", path, err)
		}
		return simulator.Output{}
	}
	return wrong(22, "lfs project: wrong arguments %q", args)
}

// enforce applies a project's limit to its directories. The underlying file system supports one
// directory per project, which is enough for the plugin.
func (p *product) enforce(id uint32) error {
	var bytes *int64
	if l := p.limits[id]; l.kib > 0 {
		n := l.kib * 1024
		bytes = &n
	}
	var errs []error
	for dir, of := range p.projects {
		if of == id {
			errs = append(errs, p.server.Tree.Limit(dir, bytes))
		}
	}
	return errors.Join(errs...)
}

// options reads "-p ID -B 1 …" and the mount point behind.
func options(args []string, known ...string) (map[string]int64, error) {
	out := map[string]int64{}
	if len(args)%2 != 1 {
		return nil, errors.New("the mount point is missing")
	}
	for i := 0; i+1 < len(args); i += 2 {
		n, err := strconv.ParseInt(args[i+1], 10, 64)
		if err != nil || !slices.Contains(known, args[i]) {
			return nil, fmt.Errorf("wrong option %s %s", args[i], args[i+1])
		}
		out[args[i]] = n
	}
	return out, nil
}

func (p *product) setquota(args []string) simulator.Output {
	o, err := options(args, "-p", "-b", "-B", "-i", "-I")
	if err != nil {
		return wrong(22, "lfs setquota: %v", err)
	}
	if p.server.Setting("project") == "off" {
		return wrong(95, "setquota failed: Operation not supported")
	}
	id := uint32(o["-p"])
	if id == 0 {
		return wrong(22, "lfs setquota: can't set quota for project 0")
	}
	p.limits[id] = limit{kib: o["-B"], inodes: o["-I"]}
	if err := p.enforce(id); err != nil {
		return wrong(5, "setquota failed: %v", err)
	}
	return simulator.Output{}
}

func (p *product) quota(args []string) simulator.Output {
	quiet := len(args) > 0 && args[0] == "-q"
	if quiet {
		args = args[1:]
	}
	o, err := options(args, "-p")
	if err != nil {
		return wrong(22, "lfs quota: %v", err)
	}
	if p.server.Setting("project") == "off" {
		return wrong(95, "Unexpected quotactl error: Operation not supported")
	}
	id := uint32(o["-p"])
	var bytes, files int64
	for dir, of := range p.projects {
		if u, err := p.server.Tree.Usage(dir); err == nil && of == id {
			bytes, files = bytes+u.Bytes, files+u.Files+u.Directories+1
		}
	}
	return simulator.Output{Stdout: p.report(id, args[len(args)-1], (bytes+1023)/1024, files, quiet)}
}

// report is laid out as lfs does.
func (p *product) report(id uint32, mount string, kib, files int64, quiet bool) string {
	l := p.limits[id]
	var out strings.Builder
	if !quiet {
		fmt.Fprintf(&out, "Disk quotas for prj %d (pid %d):\n%15s %8s %7s %7s %7s %7s %7s %7s %7s\n",
			id, id, "Filesystem", "kbytes", "quota", "limit", "grace", "files", "quota", "limit", "grace")
	}
	if len(mount) > 15 {
		fmt.Fprintf(&out, "%s\n%15s", mount, "")
	} else {
		fmt.Fprintf(&out, "%15s", mount)
	}
	used := strconv.FormatInt(kib, 10)
	if p.server.Setting("ost") == "inactive" {
		used = "[" + used + "]"
	}
	if l.kib > 0 && kib >= l.kib {
		used += "*"
	}
	fmt.Fprintf(&out, " %8s %7d %7d %7s %7d %7d %7d %7s\n", used, 0, l.kib, "-", files, 0, l.inodes, "-")
	if p.server.Setting("ost") == "inactive" {
		out.WriteString("Some errors happened when getting quota info. Some devices may be not working or deactivated. The data in \"[]\" is inaccurate.\n")
	}
	return out.String()
}
