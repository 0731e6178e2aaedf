package object

import (
	"errors"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/volume"
)

func TestWhatIsThereAlready(t *testing.T) {
	const (
		update    = storagepb.ObjectItem_UPDATE
		overwrite = storagepb.ObjectItem_OVERWRITE
		fail      = storagepb.ObjectItem_FAIL
		resume    = storagepb.ObjectItem_RESUME
	)
	equal := volume.Entry{Mode: unix.S_IFREG, Size: 3, Modified: time.UnixMilli(7)}
	older, shorter, link, directory := equal, equal, equal, equal
	older.Modified, shorter.Size, link.Mode, directory.Mode = time.UnixMilli(6), 2, unix.S_IFLNK, unix.S_IFDIR
	left := func(err error) bool { return errors.Is(err, errEqual) }
	goes := func(err error) bool { return err == nil }
	for _, c := range []struct {
		name  string
		there *volume.Entry
		how   storagepb.ObjectItem_Existing
		want  func(error) bool
	}{
		{"nothing", nil, fail, goes},
		{"an equal file", &equal, update, left}, {"an equal file", &equal, overwrite, goes},
		{"an equal file", &equal, fail, errdefs.IsAlreadyExists}, {"an equal file", &equal, resume, left},
		{"an older file", &older, update, goes}, {"an older file", &older, resume, errdefs.IsAlreadyExists},
		{"a shorter file", &shorter, update, goes}, {"a shorter file", &shorter, resume, errdefs.IsAlreadyExists},
		{"a link", &link, update, goes}, {"a link", &link, resume, errdefs.IsAlreadyExists},
		{"a directory", &directory, update, errdefs.IsFailedPrecondition}, {"a directory", &directory, overwrite, errdefs.IsFailedPrecondition},
	} {
		if err := admits(c.there, &storagepb.ObjectItem{Size: 3, ModifiedUnixMs: 7, Existing: c.how}); !c.want(err) {
			t.Errorf("%s, %s: %v", c.name, c.how, err)
		}
	}
}
