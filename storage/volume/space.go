package volume

import (
	"context"

	"golang.org/x/sys/unix"
)

// Space is how many bytes there are for a folder, and how many are left: of its
// scope's limit, and of the file system where that has less.
func (f *Folder) Space(ctx context.Context) (total, left int64, err error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.dir.Fd()), &st); err != nil {
		return 0, 0, classify("statfs", "", err)
	}
	total, left = int64(st.Blocks)*st.Bsize, int64(st.Bavail)*st.Bsize
	s, err := f.vol.Limit(ctx, f.Path[:32])
	if err != nil {
		return 0, 0, err
	}
	if l := s.GetLimit(); l != nil && l.Bytes != nil {
		total = *l.Bytes
		left = max(0, min(left, total-s.GetUsedBytes()-f.vol.promised(f.Path[:32], s)))
	}
	return total, left, nil
}
