package sessionfile

import (
	"strconv"
	"strings"
	"time"

	"github.com/berthhq/berth/internal/containerfile"
	"github.com/berthhq/berth/internal/problem"
)

// File is an entry of a directory as clients see it.
type File struct {
	Name       string    `json:"name"`
	Path       string    `json:"path"`
	Type       string    `json:"type"` // FILE, DIRECTORY, SYMLINK or OTHER
	Size       int64     `json:"size"`
	Mode       string    `json:"mode"`
	ModifiedAt time.Time `json:"modifiedAt"`
	Target     string    `json:"target,omitempty"`     // target of a link
	TargetType string    `json:"targetType,omitempty"` // type of the target; empty if the target does not exist
}

// Page is a page of a directory.
type Page struct {
	Path  string `json:"path"`
	Home  string `json:"home"`
	Files []File `json:"files"`
	Next  string `json:"next"` // cursor of the next page; empty at the end
}

// list answers with a page of a directory. Only the first page is in the audit log.
func (v *fileRequest) list() error {
	path, err := pathOf(v.r)
	if err != nil {
		return err
	}
	q := v.r.URL.Query()
	first := containerfile.MaxFirst
	if text := q.Get("first"); text != "" {
		if first, err = strconv.Atoi(text); err != nil || first < 1 || first > containerfile.MaxFirst {
			return problem.Invalid("first", "must be a number from 1 to %d", containerfile.MaxFirst).WithLimit("1.." + strconv.Itoa(containerfile.MaxFirst))
		}
	}
	after := q.Get("after")
	if len(after) > 1024 {
		return problem.Invalid("after", "is not a cursor")
	}
	if after == "" {
		if err := v.record(quoted(path)); err != nil {
			return err
		}
	}
	c, a, err := v.send(containerfile.Request{Op: containerfile.List, Path: path, First: first, After: after})
	if err != nil {
		return err
	}
	v.h.pool.put(c)
	l := a.Listing
	if l == nil || len(l.Entries) > first {
		return broken()
	}
	v.used.Moved()
	page := Page{Path: l.Path, Home: l.Home, Files: make([]File, len(l.Entries)), Next: l.Next}
	for i, e := range l.Entries {
		page.Files[i] = fileOf(e)
	}
	return v.answer(page)
}

func fileOf(e containerfile.Info) File {
	return File{
		Name: e.Name, Path: e.Path, Type: typeOf(e.Type), Size: max(e.Size, 0), Mode: e.Mode, ModifiedAt: timeOf(e.Modified),
		Target: e.Target, TargetType: typeOf(e.TargetType),
	}
}

// typeOf returns the type of an entry in the words of the API.
func typeOf(kind string) string {
	switch kind {
	case "":
		return ""
	case containerfile.File, containerfile.Directory, containerfile.Symlink:
		return strings.ToUpper(kind)
	}
	return "OTHER"
}

// timeOf returns a time that JSON can represent, whatever the container sends.
func timeOf(ms int64) time.Time {
	t := time.UnixMilli(ms).UTC()
	if t.Year() < 0 || t.Year() > 9999 {
		return time.Unix(0, 0).UTC()
	}
	return t
}

// broken returns the error for a malformed answer of a runner.
func broken() error {
	return problem.Unavailable("the container sent an answer that is not valid")
}
