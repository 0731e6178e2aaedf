package transfer

import (
	"maps"
	"path"
	"slices"
	"time"
)

// entry is a file or directory on one side.
type entry struct {
	kind     string // file, directory, or a kind that is not copied
	size     int64
	modified time.Time
}

func (e entry) travels() bool { return e.kind == "file" || e.kind == "directory" }

// tree maps the paths below the compared directory to the entries of one side.
type tree map[string]entry

// paths returns the sorted paths: a directory comes before its entries.
func (t tree) paths() []string { return slices.Sorted(maps.Keys(t)) }

// change is the action for one path of the target.
type change struct {
	path   string
	action string // makeDir, remove, leave, or download to copy the file
	entry
}

// difference has the changes that make the target equal to the source, in the order of the fields.
type difference struct {
	way   []change // removals of entries that are in the way of others
	come  []change
	extra []change // removals of entries that the source lacks
}

// compare lists the changes that make "to" equal to "from". Without tidy, nothing is removed.
// Entries that cannot be copied stay in the target, with everything below them.
func compare(from, to tree, same func(path string) bool, tidy bool) (d difference) {
	stays, goes := map[string]bool{}, map[string]bool{}
	for _, p := range from.paths() {
		f := from[p]
		t, there := to[p]
		if stays[path.Dir(p)] || !f.travels() {
			stays[p] = true
			continue
		}
		if there && f.kind != t.kind && !tidy {
			d.come = append(d.come, change{p, leave, f})
			stays[p] = true
			continue
		}
		if there && f.kind != t.kind {
			d.way = append(d.way, change{p, remove, t})
			goes[p], there = true, false
		}
		switch {
		case f.kind == "directory" && !there:
			d.come = append(d.come, change{p, makeDir, f})
		case f.kind == "file" && (!there || !same(p)):
			d.come = append(d.come, change{p, download, f})
		}
	}
	if !tidy {
		return d
	}
	for _, p := range to.paths() {
		_, kept := from[p]
		switch dir := path.Dir(p); {
		case stays[dir]:
			stays[p] = true
		case goes[dir]:
			goes[p] = true
		case !kept:
			goes[p] = true
			d.extra = append(d.extra, change{p, remove, to[p]})
		}
	}
	return d
}
