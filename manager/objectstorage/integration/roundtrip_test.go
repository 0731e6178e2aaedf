package integration

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/manager/managertest"
)

func TestFolderFromAnObjectStorageAndBack(t *testing.T) {
	objects := map[string][]byte{
		"a.txt": []byte("hello"), "empty": {}, "deep/er/b.bin": random(3 << 20), "deep/c": random(1000), "deep-d": random(10),
		"ünï cödé +&?%20.txt": []byte("names"),
	}
	l := newLake(t, objects)
	got := l.ends(t, l.bring(t, nil), task.StatusDone)
	var bytesAll int64
	for key, body := range objects {
		bytesAll += int64(len(body))
		if !bytes.Equal(l.file(t, key), body) {
			t.Errorf("%s is another", key)
		}
	}
	if f := got.ObjectTransfer; f.Files != int64(len(objects)) || f.Files != f.FilesTotal || f.Bytes != bytesAll || f.Bytes != f.BytesTotal || f.Failed+f.Left != 0 {
		t.Errorf("figures %+v", f)
	}
	if got.Done != bytesAll || got.Total != bytesAll {
		t.Errorf("done %d of %d", got.Done, got.Total)
	}
	if left := l.leftovers(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}

	t.Run("again", func(t *testing.T) {
		before := l.count("GET /lake/a.txt")
		got := l.ends(t, l.bring(t, nil), task.StatusDone)
		if f := got.ObjectTransfer; f.Left != int64(len(objects)) || l.count("GET /lake/a.txt") != before {
			t.Errorf("equal ones were brought again: %+v", f)
		}
		got = l.ends(t, l.bring(t, managertest.Vars{"existing": "OVERWRITE"}), task.StatusDone)
		if f := got.ObjectTransfer; f.Left != 0 || l.count("GET /lake/a.txt") != before+1 {
			t.Errorf("overwrite left some: %+v", f)
		}
		got = l.ends(t, l.bring(t, managertest.Vars{"existing": "FAIL"}), task.StatusFailed)
		if f := got.ObjectTransfer; f.Failed != int64(len(objects)) || !strings.Contains(got.Message, "a file exists there") {
			t.Errorf("fail: %+v", got)
		}
	})
	t.Run("a part of it", func(t *testing.T) {
		l.ends(t, l.bring(t, managertest.Vars{"path": "deep", "directory": "in/here"}), task.StatusDone)
		l.ends(t, l.bring(t, managertest.Vars{"path": "deep/c", "directory": "one"}), task.StatusDone)
		for path, key := range map[string]string{"in/here/er/b.bin": "deep/er/b.bin", "in/here/c": "deep/c", "one/c": "deep/c"} {
			if !bytes.Equal(l.file(t, path), objects[key]) {
				t.Errorf("%s is not %s", path, key)
			}
		}
		if _, err := os.Stat(filepath.Join(l.dir, "in/here/deep-d")); err == nil {
			t.Error("deep-d is not below deep")
		}
		if got := l.ends(t, l.bring(t, managertest.Vars{"path": "no/such"}), task.StatusFailed); !strings.Contains(got.Message, "no object") {
			t.Errorf("a missing object: %+v", got)
		}
	})
	t.Run("and back", func(t *testing.T) {
		if err := os.Symlink("/etc/passwd", filepath.Join(l.dir, "link")); err != nil {
			t.Fatal(err)
		}
		large := random(70 << 20)
		l.write(t, "out/large", large)
		l.write(t, "out/sub/small", []byte("small"))
		l.write(t, "out/nothing", nil)
		var unsummed atomic.Int32
		l.breaks(func(_ http.ResponseWriter, r *http.Request) bool {
			if isObject(r, http.MethodPut) && r.Header.Get("Content-MD5") == "" {
				unsummed.Add(1)
			}
			return false
		})
		got := l.ends(t, l.send(t, managertest.Vars{"path": "out", "directory": "back/up"}), task.StatusDone)
		l.breaks(nil)
		if n := unsummed.Load(); n > 0 {
			t.Errorf("%d requests without a checksum of their body", n)
		}
		if f := got.ObjectTransfer; f.Files != 3 || f.Bytes != int64(len(large)+5) {
			t.Errorf("figures %+v", f)
		}
		if !bytes.Equal(l.object(t, "back/up/large"), large) || string(l.object(t, "back/up/sub/small")) != "small" || len(l.object(t, "back/up/nothing")) != 0 {
			t.Error("an object is another than its file")
		}
		if n := l.uploads(t); n != 0 {
			t.Errorf("%d unfinished uploads", n)
		}
		got = l.ends(t, l.send(t, managertest.Vars{"path": "out", "directory": "back/up"}), task.StatusDone)
		if f := got.ObjectTransfer; f.Left != 3 {
			t.Errorf("equal ones were sent again: %+v", f)
		}
		l.write(t, "out/sub/small", []byte("newer"))
		later := time.Now().Add(time.Hour)
		if err := os.Chtimes(filepath.Join(l.dir, "out/sub/small"), later, later); err != nil {
			t.Fatal(err)
		}
		got = l.ends(t, l.send(t, managertest.Vars{"path": "out", "directory": "back/up"}), task.StatusDone)
		if f := got.ObjectTransfer; f.Left != 2 || string(l.object(t, "back/up/sub/small")) != "newer" {
			t.Errorf("a newer file of the same size was not sent: %+v", f)
		}
		if got := l.ends(t, l.send(t, managertest.Vars{"path": "out/large", "directory": "back/up", "existing": "FAIL"}), task.StatusFailed); got.ObjectTransfer.Failed != 1 {
			t.Errorf("fail: %+v", got)
		}
		l.ends(t, l.send(t, managertest.Vars{"directory": "all"}), task.StatusDone)
		if _, err := l.minio.StatObject(t.Context(), "lake", "all/link", minio.StatObjectOptions{}); err == nil {
			t.Error("a link was followed")
		}
		if string(l.object(t, "all/a.txt")) != "hello" {
			t.Error("a.txt is not among all")
		}
	})
}
