package volume

import (
	"context"

	"golang.org/x/sys/unix"
)

// Space is the space of a folder in bytes and files: that of its scope's limit, or that of the
// file system if less.
type Space struct {
	Total, Left, Used int64  // bytes
	Files, FilesLeft  uint64 // 0 if the file system does not count files
}

// Space returns the folder's space. Reservations of writers are not part of the free space.
func (f *Folder) Space(ctx context.Context) (Space, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.dir.Fd()), &st); err != nil {
		return Space{}, classify("statfs", "", err)
	}
	out := Space{Total: int64(st.Blocks) * st.Bsize, Left: int64(st.Bavail) * st.Bsize, Files: st.Files, FilesLeft: st.Ffree}
	out.Used = out.Total - int64(st.Bfree)*st.Bsize
	scope := f.Path[:32]
	s, err := f.vol.Limit(ctx, scope)
	if err != nil {
		return Space{}, err
	}
	if s != nil && s.UsedBytes != nil {
		out.Used = *s.UsedBytes + f.vol.promised(scope, s)
	}
	if l := s.GetLimit(); l != nil && l.Bytes != nil {
		out.Total = *l.Bytes
		out.Left = max(0, min(out.Left, out.Total-s.GetUsedBytes()-f.vol.promised(scope, s)))
	}
	if l := s.GetLimit(); l != nil && l.Inodes != nil {
		out.Files = uint64(max(0, *l.Inodes))
		out.FilesLeft = uint64(max(0, *l.Inodes-s.GetUsedInodes()))
	}
	return out, nil
}
