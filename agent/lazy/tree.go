package lazy

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/containerd/stargz-snapshotter/estargz"
	"golang.org/x/sys/unix"
)

// node is a file of the image. Its number is its index in the tree plus one, so that the root has FUSE's
// number of the root.
type node struct {
	mode     uint32
	uid, gid uint32
	links    uint32
	rdev     uint32
	size     int64
	changed  int64  // seconds
	target   string // of a symbolic link
	attrs    map[string][]byte
	children map[string]uint32 // of a directory
	chunks   []chunk           // of a regular file, in order
}

func (n *node) kind() uint32 { return n.mode & unix.S_IFMT }

// chunk is a part of a file that is compressed by itself, or with others.
type chunk struct {
	layer  int
	offset int64 // in the layer, of the compressed stream
	inner  int64 // in the decompressed stream
	at     int64 // in the file
	size   int64
	digest [32]byte
}

// tree is the merged directory tree of all layers.
type tree struct{ nodes []node }

func newTree() *tree {
	return &tree{nodes: []node{{mode: unix.S_IFDIR | 0o755, links: 1, children: map[string]uint32{}}}}
}

const root = 0

func invalid(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, errdefs.ErrInvalidArgument)...)
}

// add puts a layer on top of the tree. Whiteouts apply to the layers below only, so they come first.
func (t *tree) add(layer int, entries []*estargz.TOCEntry) error {
	for _, e := range entries {
		dir, name := split(e.Name)
		switch {
		case name == ".wh..wh..opq":
			if at, ok := t.find(dir); ok {
				clear(t.nodes[at].children)
			}
		case strings.HasPrefix(name, ".wh."):
			if at, ok := t.find(dir); ok {
				delete(t.nodes[at].children, strings.TrimPrefix(name, ".wh."))
			}
		}
	}
	var last uint32 // the file that chunks belong to
	for _, e := range entries {
		if _, name := split(e.Name); strings.HasPrefix(name, ".wh.") || hidden(e.Name) {
			last = root
			continue
		}
		if e.Type == "chunk" {
			if last == root {
				continue // of a file that is left out
			}
			if err := t.chunk(layer, last, e); err != nil {
				return err
			}
			continue
		}
		at, err := t.put(layer, e)
		if err != nil {
			return err
		}
		last = root
		if e.Type == "reg" {
			last = at
		}
		if len(t.nodes) > maxFiles {
			return invalid("the image has more than %d files", maxFiles)
		}
	}
	return nil
}

// hidden reports whether a file belongs to the format and not to the image.
func hidden(name string) bool {
	switch strings.TrimPrefix(path.Clean("/"+name), "/") {
	case estargz.PrefetchLandmark, estargz.NoPrefetchLandmark, estargz.TOCTarName:
		return true
	}
	return false
}

func split(name string) (dir, base string) {
	clean := path.Clean("/" + name)
	return path.Dir(clean), path.Base(clean)
}

// put adds or replaces a file.
func (t *tree) put(layer int, e *estargz.TOCEntry) (uint32, error) {
	n, err := newNode(e)
	if err != nil {
		return 0, err
	}
	if path.Clean("/"+e.Name) == "/" {
		if n.kind() != unix.S_IFDIR {
			return 0, invalid("the root is not a directory")
		}
		n.children, n.links = t.nodes[root].children, 1
		t.nodes[root] = n
		return root, nil
	}
	dir, name := split(e.Name)
	parent, err := t.makeAll(dir)
	if err != nil {
		return 0, err
	}
	if e.Type == "hardlink" {
		at, ok := t.find(path.Dir(path.Clean("/" + e.LinkName)))
		if ok {
			at, ok = t.nodes[at].children[path.Base(e.LinkName)]
		}
		if !ok || t.nodes[at].kind() == unix.S_IFDIR {
			return 0, invalid("hard link %.200q leads to %.200q, which is not a file of the image", e.Name, e.LinkName)
		}
		t.nodes[parent].children[name] = at
		t.nodes[at].links++
		return at, nil
	}
	if old, ok := t.nodes[parent].children[name]; ok && n.kind() == unix.S_IFDIR && t.nodes[old].kind() == unix.S_IFDIR {
		n.children, n.links = t.nodes[old].children, 1
		t.nodes[old] = n
		return old, nil
	}
	n.links = 1
	t.nodes = append(t.nodes, n)
	at := uint32(len(t.nodes) - 1)
	t.nodes[parent].children[name] = at
	if e.Type == "reg" && n.size > 0 {
		err = t.chunk(layer, at, e)
	}
	return at, err
}

var kinds = map[string]uint32{
	"dir": unix.S_IFDIR, "reg": unix.S_IFREG, "symlink": unix.S_IFLNK, "hardlink": unix.S_IFREG,
	"char": unix.S_IFCHR, "block": unix.S_IFBLK, "fifo": unix.S_IFIFO,
}

func newNode(e *estargz.TOCEntry) (n node, err error) {
	kind, ok := kinds[e.Type]
	if !ok {
		return n, invalid("file %.200q has the unknown type %.20q", e.Name, e.Type)
	}
	if e.Size < 0 || e.UID < 0 || e.GID < 0 {
		return n, invalid("file %.200q has a negative number", e.Name)
	}
	n = node{mode: kind | uint32(e.Mode)&0o7777, uid: uint32(e.UID), gid: uint32(e.GID), attrs: e.Xattrs}
	if at, err := time.Parse(time.RFC3339, e.ModTime3339); err == nil {
		n.changed = at.Unix()
	}
	switch kind {
	case unix.S_IFDIR:
		n.children = map[string]uint32{}
	case unix.S_IFREG:
		n.size = e.Size
	case unix.S_IFLNK:
		n.target, n.size = e.LinkName, int64(len(e.LinkName))
	default:
		n.rdev = uint32(unix.Mkdev(uint32(e.DevMajor), uint32(e.DevMinor)))
	}
	return n, nil
}

// chunk adds the next part of a file.
func (t *tree) chunk(layer int, at uint32, e *estargz.TOCEntry) error {
	n := &t.nodes[at]
	c := chunk{layer: layer, offset: e.Offset, inner: e.InnerOffset, at: e.ChunkOffset, size: e.ChunkSize}
	if c.size == 0 {
		c.size = n.size - c.at
	}
	end := int64(0)
	if len(n.chunks) > 0 {
		last := n.chunks[len(n.chunks)-1]
		end = last.at + last.size
	}
	if c.at != end || c.size <= 0 || c.size > maxChunk || c.at+c.size > n.size || c.inner < 0 || c.inner > maxChunk || c.offset <= 0 && c.inner == 0 && c.offset != 0 {
		return invalid("file %.200q has a part at %d of %d bytes, which does not fit", e.Name, c.at, c.size)
	}
	var err error
	if c.digest, err = parseDigest(e.ChunkDigest); err != nil {
		return invalid("a part of file %.200q has no digest", e.Name)
	}
	n.chunks = append(n.chunks, c)
	return nil
}

// check returns an error if a part of a file is missing.
func (t *tree) check() error {
	for i := range t.nodes {
		n := &t.nodes[i]
		if n.kind() != unix.S_IFREG || n.size == 0 {
			continue
		}
		if len(n.chunks) == 0 || n.chunks[len(n.chunks)-1].at+n.chunks[len(n.chunks)-1].size != n.size {
			return invalid("the index lacks parts of a file of %d bytes", n.size)
		}
	}
	return nil
}

const maxLinks = 40

// find returns a directory, following links inside the image.
func (t *tree) find(dir string) (uint32, bool) {
	at, _, ok := t.walk(dir, false)
	return at, ok
}

// makeAll returns a directory, which it creates if it does not exist.
func (t *tree) makeAll(dir string) (uint32, error) {
	at, reason, ok := t.walk(dir, true)
	if !ok {
		return 0, invalid("directory %.200q: %s", dir, reason)
	}
	return at, nil
}

func (t *tree) walk(dir string, create bool) (at uint32, reason string, ok bool) {
	todo := strings.Split(strings.Trim(dir, "/"), "/")
	at = root
	var parents []uint32
	for links := 0; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			if len(parents) > 0 {
				at, parents = parents[len(parents)-1], parents[:len(parents)-1]
			}
			continue
		}
		next, there := t.nodes[at].children[name]
		if !there {
			if !create {
				return 0, "does not exist", false
			}
			t.nodes = append(t.nodes, node{mode: unix.S_IFDIR | 0o755, links: 1, children: map[string]uint32{}})
			next = uint32(len(t.nodes) - 1)
			t.nodes[at].children[name] = next
		}
		switch n := &t.nodes[next]; n.kind() {
		case unix.S_IFDIR:
			parents, at = append(parents, at), next
		case unix.S_IFLNK:
			if links++; links > maxLinks {
				return 0, "too many links", false
			}
			if strings.HasPrefix(n.target, "/") {
				at, parents = root, nil
			}
			todo = append(strings.Split(n.target, "/"), todo...)
		default:
			return 0, "is not a directory", false
		}
	}
	return at, "", true
}
