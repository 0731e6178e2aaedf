package lazy

import (
	"context"
	"errors"
	"math"
	"slices"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// forever is how long the kernel may remember what it has learned: an image never changes.
const forever = 365 * 24 * time.Hour

// fileSystem serves an image. Numbers of nodes are fixed, so there is nothing to remember about the kernel.
type fileSystem struct {
	fuse.RawFileSystem
	image *image
}

func newFileSystem(i *image) *fileSystem {
	return &fileSystem{RawFileSystem: fuse.NewDefaultRawFileSystem(), image: i}
}

// String is the type of the mount: fuse.berth.
func (f *fileSystem) String() string { return "berth" }

func (f *fileSystem) node(id uint64) *node {
	if id == 0 || id > uint64(len(f.image.tree.nodes)) {
		return nil
	}
	return &f.image.tree.nodes[id-1]
}

func (f *fileSystem) attr(id uint64, a *fuse.Attr) {
	n := f.node(id)
	a.Ino, a.Size, a.Blocks, a.Blksize = id, uint64(n.size), uint64(n.size+511)/512, 4096
	a.Mode, a.Nlink, a.Rdev = n.mode, max(n.links, 1), n.rdev
	a.Uid, a.Gid = n.uid, n.gid
	at := uint64(max(n.changed, 0))
	a.Atime, a.Mtime, a.Ctime = at, at, at
}

func (f *fileSystem) entry(id uint64, out *fuse.EntryOut) {
	out.NodeId, out.Generation = id, 1
	out.SetEntryTimeout(forever)
	out.SetAttrTimeout(forever)
	f.attr(id, &out.Attr)
}

// Lookup also lets the kernel remember that a name does not exist.
func (f *fileSystem) Lookup(_ <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	dir := f.node(h.NodeId)
	if dir == nil {
		return fuse.ENOENT
	}
	at, ok := dir.children[name]
	if !ok {
		out.NodeId = 0
		out.SetEntryTimeout(forever)
		return fuse.OK
	}
	f.entry(uint64(at)+1, out)
	return fuse.OK
}

func (f *fileSystem) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	if f.node(in.NodeId) == nil {
		return fuse.ENOENT
	}
	out.SetTimeout(forever)
	f.attr(in.NodeId, &out.Attr)
	return fuse.OK
}

func (f *fileSystem) Readlink(_ <-chan struct{}, h *fuse.InHeader) ([]byte, fuse.Status) {
	n := f.node(h.NodeId)
	if n == nil || n.kind() != unix.S_IFLNK {
		return nil, fuse.EINVAL
	}
	return []byte(n.target), fuse.OK
}

func (f *fileSystem) Access(_ <-chan struct{}, _ *fuse.AccessIn) fuse.Status { return fuse.OK }

func (f *fileSystem) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if in.Flags&syscall.O_ACCMODE != syscall.O_RDONLY {
		return fuse.EROFS
	}
	out.OpenFlags = fuse.FOPEN_KEEP_CACHE
	return fuse.OK
}

func (f *fileSystem) Read(cancel <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	n := f.node(in.NodeId)
	if n == nil || n.kind() != unix.S_IFREG || in.Offset > math.MaxInt64 {
		return nil, fuse.EINVAL
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	served := make(chan struct{})
	defer close(served)
	go func() {
		select {
		case <-cancel: // the process that reads got a signal
			stop()
		case <-served:
		}
	}()
	got, err := f.image.readFile(ctx, n, buf, int64(in.Offset))
	if err != nil && errors.Is(err, context.Canceled) {
		return nil, fuse.EINTR
	}
	if err != nil {
		return nil, fuse.EIO
	}
	return fuse.ReadResultData(buf[:got]), fuse.OK
}

func (f *fileSystem) OpenDir(_ <-chan struct{}, _ *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	out.OpenFlags = fuse.FOPEN_KEEP_CACHE | fuse.FOPEN_CACHE_DIR
	return fuse.OK
}

// ReadDir lists a directory in the order of names.
func (f *fileSystem) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return f.list(in, func(e fuse.DirEntry, _ uint64) bool { return out.AddDirEntry(e) })
}

// ReadDirPlus also returns the attributes of the files.
func (f *fileSystem) ReadDirPlus(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return f.list(in, func(e fuse.DirEntry, id uint64) bool {
		entry := out.AddDirLookupEntry(e)
		if entry == nil {
			return false
		}
		if e.Name != "." && e.Name != ".." {
			f.entry(id, entry)
		}
		return true
	})
}

func (f *fileSystem) list(in *fuse.ReadIn, add func(fuse.DirEntry, uint64) bool) fuse.Status {
	dir := f.node(in.NodeId)
	if dir == nil || dir.kind() != unix.S_IFDIR {
		return fuse.ENOTDIR
	}
	names := make([]string, 0, len(dir.children)+2)
	for name := range dir.children {
		names = append(names, name)
	}
	slices.Sort(names)
	names = append([]string{".", ".."}, names...)
	for i := in.Offset; i < uint64(len(names)); i++ {
		e, id := fuse.DirEntry{Name: names[i], Mode: unix.S_IFDIR, Ino: in.NodeId, Off: i + 1}, in.NodeId
		if i > 1 {
			id = uint64(dir.children[names[i]]) + 1
			e.Mode, e.Ino = f.node(id).kind(), id
		}
		if !add(e, id) {
			break
		}
	}
	return fuse.OK
}

func (f *fileSystem) GetXAttr(_ <-chan struct{}, h *fuse.InHeader, name string, dest []byte) (uint32, fuse.Status) {
	n := f.node(h.NodeId)
	if n == nil {
		return 0, fuse.ENOENT
	}
	value, ok := n.attrs[name]
	if !ok {
		return 0, fuse.ENODATA
	}
	return fit(value, dest)
}

func (f *fileSystem) ListXAttr(_ <-chan struct{}, h *fuse.InHeader, dest []byte) (uint32, fuse.Status) {
	n := f.node(h.NodeId)
	if n == nil {
		return 0, fuse.ENOENT
	}
	var list []byte
	for name := range n.attrs {
		list = append(append(list, name...), 0)
	}
	return fit(list, dest)
}

// fit copies a value if there is room, and returns its size.
func fit(value, dest []byte) (uint32, fuse.Status) {
	if len(dest) > 0 && len(dest) < len(value) {
		return uint32(len(value)), fuse.ERANGE
	}
	copy(dest, value)
	return uint32(len(value)), fuse.OK
}

func (f *fileSystem) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	var blocks uint64
	for _, b := range f.image.blobs {
		blocks += uint64(b.layer.Size+4095) / 4096
	}
	out.Bsize, out.Frsize, out.NameLen, out.Blocks, out.Files = 4096, 4096, 255, blocks, uint64(len(f.image.tree.nodes))
	return fuse.OK
}
