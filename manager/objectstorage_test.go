package manager_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/minio/minio-go/v7"

	"github.com/berthhq/berth/ent/objectstorage"
	"github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/manager/managertest"
)

const (
	createStorage = `mutation($in: CreateObjectStorageInput!) { createObjectStorage(input: $in) { objectStorage { id } } }`
	updateStorage = `mutation($in: UpdateObjectStorageInput!) { updateObjectStorage(input: $in) { objectStorage { id } } }`
	testStorage   = `mutation($id: ID!) { testObjectStorage(input: {id: $id}) { ok message field } }`
	importObjects = `mutation($in: ImportFolderInput!) { importFolder(input: $in) { task { id } } }`
	exportObjects = `mutation($in: ExportFolderInput!) { exportFolder(input: $in) { task { id } } }`
)

// lake is a domain's bucket and a folder of a member.
type lake struct {
	*depot
	*gate
	id, folder uuid.UUID
	dir        string // of the folder
	minio      *minio.Client
}

func newLake(t *testing.T, objects map[string][]byte) *lake {
	t.Helper()
	c := newCluster(t, 0)
	l := &lake{gate: newGate(t), depot: newDepot(t, c)}
	l.minio = l.bucket(t, "lake", objects)
	l.id = addStorage(t, c.m.As(t, c.A.Admin), l.storage("lake", "lake", managertest.Vars{"domain": c.A.ID}))
	var errs managertest.Errors
	if l.folder, errs = folder(t, c.as, managertest.Vars{"name": "data"}); len(errs) > 0 {
		t.Fatal(errs)
	}
	l.dir = filepath.Join(l.root, l.row(t, l.folder).Path)
	return l
}

func addStorage(t *testing.T, as *managertest.Client, in managertest.Vars) uuid.UUID {
	t.Helper()
	var got struct {
		CreateObjectStorage struct{ ObjectStorage struct{ ID uuid.UUID } }
	}
	as.Must(t, createStorage, managertest.Vars{"in": in}, &got)
	return got.CreateObjectStorage.ObjectStorage.ID
}

// bring begins an import of the lake, send an export.
func (l *lake) bring(t *testing.T, in managertest.Vars) uuid.UUID {
	t.Helper()
	var got struct {
		ImportFolder struct{ Task struct{ ID uuid.UUID } }
	}
	l.as.Must(t, importObjects, managertest.Vars{"in": l.input(in)}, &got)
	return got.ImportFolder.Task.ID
}

func (l *lake) send(t *testing.T, in managertest.Vars) uuid.UUID {
	t.Helper()
	var got struct {
		ExportFolder struct{ Task struct{ ID uuid.UUID } }
	}
	l.as.Must(t, exportObjects, managertest.Vars{"in": l.input(in)}, &got)
	return got.ExportFolder.Task.ID
}

func (l *lake) input(in managertest.Vars) managertest.Vars {
	out := managertest.Vars{"vfolder": l.folder, "objectStorage": l.id}
	maps.Copy(out, in)
	return out
}

// moved is a task of a transfer as people see it.
type moved struct {
	Status, Message string
	Done, Total     int64
	ObjectTransfer  struct {
		Files, FilesTotal, Bytes, BytesTotal, Left, Failed int64
		Failures                                           []struct{ Path, Error string }
	}
}

func (l *lake) look(t *testing.T, id uuid.UUID) moved {
	t.Helper()
	var got struct{ Node moved }
	l.as.Must(t, `query($id: ID!) { node(id: $id) { ... on Task { status message done total
		objectTransfer { files filesTotal bytes bytesTotal left failed failures { path error } } } } }`, managertest.Vars{"id": id}, &got)
	return got.Node
}

// ends waits for the end of a task.
func (l *lake) ends(t *testing.T, id uuid.UUID, want task.Status) moved {
	t.Helper()
	var got moved
	managertest.Eventually(t, "the task ends", func() bool {
		got = l.look(t, id)
		return slices.Contains([]string{"DONE", "FAILED", "CANCELLED"}, got.Status)
	})
	if got.Status != strings.ToUpper(string(want)) {
		t.Fatalf("%+v, want it %s", got, want)
	}
	return got
}

func (l *lake) file(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(l.dir, path))
	if err != nil {
		t.Error(err)
	}
	return raw
}

func (l *lake) object(t *testing.T, key string) []byte {
	t.Helper()
	o, err := l.minio.GetObject(t.Context(), "lake", key, minio.GetObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(o)
	if err != nil {
		t.Errorf("%s: %v", key, err)
	}
	return raw
}

func (l *lake) write(t *testing.T, path string, body []byte) {
	t.Helper()
	path = filepath.Join(l.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, body, 0o644); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
}

// leftovers are files of transfers that are not at their place.
func (l *lake) leftovers(t *testing.T) (names []string) {
	t.Helper()
	scope := filepath.Join(l.root, strings.Split(l.row(t, l.folder).Path, "/")[0], ".upload")
	entries, _ := os.ReadDir(scope)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func (l *lake) uploads(t *testing.T) (n int) {
	t.Helper()
	for u := range l.minio.ListIncompleteUploads(t.Context(), "lake", "", true) {
		if u.Err != nil {
			t.Fatal(u.Err)
		}
		n++
	}
	return n
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}

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
			t.Errorf("what is not there: %+v", got)
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
			t.Errorf("%d requests without the sum of what they send", n)
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

func TestHostileObjects(t *testing.T) {
	l := newLake(t, map[string][]byte{"good": []byte("good"), "zz": []byte("zz")})
	hostile := []string{"..%2Fup", "a%2F..%2Fb", "%2Fabsolute", "n%00ul", "b%2F", "good%2Fbelow", "x%2F%2Fy", strings.Repeat("n", 256), "bell%07"}
	l.breaks(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/lake/good/below" { // which a directory of files cannot serve
			w.Header().Set("ETag", `"x"`)
			_, _ = io.WriteString(w, "four")
			return true
		}
		if r.URL.Query().Get("list-type") != "2" {
			return false
		}
		resp, body := l.answer(t, r)
		after := r.URL.Query().Get("start-after")
		var more strings.Builder
		for i, key := range hostile {
			if name := fmt.Sprintf("h%d", i); name > after || after == "" {
				fmt.Fprintf(&more, "<Contents><Key>%s</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified><ETag>&quot;x&quot;</ETag><Size>4</Size></Contents>", key)
			}
		}
		if r.URL.Query().Get("prefix") == "" && after == "" {
			body = bytes.Replace(body, []byte("</ListBucketResult>"), []byte(more.String()+"<EncodingType>url</EncodingType></ListBucketResult>"), 1)
			resp.Header.Del("Content-Length")
		}
		reply(w, resp, body)
		return true
	})
	got := l.ends(t, l.bring(t, nil), task.StatusFailed)
	if f := got.ObjectTransfer; f.Failed != int64(len(hostile)) || f.Files != int64(len(hostile))+2 {
		t.Errorf("figures %+v", f)
	}
	for _, one := range got.ObjectTransfer.Failures {
		if one.Error == "" || one.Error == "internal error" || strings.Contains(one.Error, "NoSuchKey") {
			t.Errorf("%q is refused: %s", one.Path, one.Error)
		}
	}
	if string(l.file(t, "good")) != "good" || string(l.file(t, "zz")) != "zz" {
		t.Error("what is good did not come")
	}
	entries, err := os.ReadDir(l.dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("in the folder: %v %v", entries, err)
	}
}

func TestBrokenObjectStorage(t *testing.T) {
	body := random(5 << 20)
	l := newLake(t, map[string][]byte{"a": body, "b": random(100)})
	for name, c := range map[string]struct {
		wrong func() func(w http.ResponseWriter, r *http.Request) bool
		want  task.Status
		says  string
	}{
		"cut twice": {func() func(http.ResponseWriter, *http.Request) bool {
			var n atomic.Int32
			return func(w http.ResponseWriter, r *http.Request) bool {
				if !isObject(r, http.MethodGet) || r.URL.Path != "/lake/a" || n.Add(1) > 2 {
					return false
				}
				if at := r.Header.Get("Range"); n.Load() == 2 && (at == "" || r.Header.Get("If-Match") == "") {
					t.Errorf("it begins anew: range %q", at)
				}
				resp, all := l.answer(t, r)
				resp.Header.Set("Content-Length", fmt.Sprint(len(all)))
				reply(w, resp, all[:len(all)/2])
				panic(http.ErrAbortHandler)
			}
		}, task.StatusDone, ""},
		"damaged once": {func() func(http.ResponseWriter, *http.Request) bool {
			var n atomic.Int32
			return func(w http.ResponseWriter, r *http.Request) bool {
				if !isObject(r, http.MethodGet) || r.URL.Path != "/lake/a" || n.Add(1) > 1 {
					return false
				}
				resp, all := l.answer(t, r)
				all[len(all)/3]++
				reply(w, resp, all)
				return true
			}
		}, task.StatusDone, ""},
		"busy at first": {func() func(http.ResponseWriter, *http.Request) bool {
			var mu sync.Mutex
			seen := map[string]bool{} // each request fails once, regardless of concurrent ones
			return func(w http.ResponseWriter, r *http.Request) bool {
				key := r.Method + " " + r.URL.String() + " " + r.Header.Get("Range")
				mu.Lock()
				defer mu.Unlock()
				if seen[key] {
					return false
				}
				seen[key] = true
				w.Header().Set("Retry-After", "0")
				w.WriteHeader([]int{http.StatusServiceUnavailable, http.StatusTooManyRequests}[len(seen)%2])
				return true
			}
		}, task.StatusDone, ""},
		"changed after it was listed": {func() func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, r *http.Request) bool {
				if isObject(r, http.MethodGet) && r.URL.Path == "/lake/a" {
					body = append(random(10), body[10:]...)
					if _, err := l.minio.PutObject(t.Context(), "lake", "a", bytes.NewReader(body), int64(len(body)), minio.PutObjectOptions{}); err != nil {
						t.Error(err)
					}
				}
				return false
			}
		}, task.StatusFailed, "1 of 2 files could not be imported; a: the object has changed"},
	} {
		t.Run(name, func(t *testing.T) {
			l.breaks(c.wrong())
			defer l.breaks(nil)
			got := l.ends(t, l.bring(t, managertest.Vars{"existing": "OVERWRITE", "directory": strings.ReplaceAll(name, " ", "-")}), c.want)
			if !strings.Contains(got.Message, c.says) {
				t.Errorf("says %q, want %q", got.Message, c.says)
			}
			if c.want == task.StatusDone && !bytes.Equal(l.file(t, strings.ReplaceAll(name, " ", "-")+"/a"), body) {
				t.Error("other bytes came")
			}
			if left := l.leftovers(t); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// A storage that is busy when it is first listed is tried again.
func TestBusyObjectStorage(t *testing.T) {
	l := newLake(t, map[string][]byte{"a": random(10)})
	var refused atomic.Int32
	l.breaks(func(w http.ResponseWriter, _ *http.Request) bool {
		if refused.Add(1) > 2 {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	var got struct {
		TestObjectStorage struct {
			Ok      bool
			Message string
		}
	}
	l.as.Must(t, testStorage, managertest.Vars{"id": l.id}, &got)
	if !got.TestObjectStorage.Ok || refused.Load() < 3 {
		t.Errorf("%+v after %d requests", got.TestObjectStorage, refused.Load())
	}
}

// killManager has another manager take over.
func (l *lake) killManager(t *testing.T) {
	t.Helper()
	l.m.Kill()
	l.m = l.Start(t)
	l.as = l.m.As(t, l.A.Member)
	l.depot.stop()
	l.cfg.Managers = []string{l.m.ClusterAddress()}
	l.start(t, nil)
}

// A proxy and a manager stop in the middle; no file that has arrived is transferred again.
func TestTransferGoesOn(t *testing.T) {
	objects := map[string][]byte{}
	for i := range 40 {
		objects[fmt.Sprintf("%02d", i)] = random(1000 + i)
	}
	for name, stop := range map[string]func(t *testing.T, l *lake){
		"a proxy": func(t *testing.T, l *lake) {
			l.stop()
			l.cfg.Registerer = nil
			l.start(t, nil)
		},
		"a manager": func(t *testing.T, l *lake) { l.killManager(t) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLake(t, objects)
			first, release := make(chan struct{}), make(chan struct{})
			var once sync.Once
			l.breaks(func(_ http.ResponseWriter, r *http.Request) bool {
				if isObject(r, http.MethodGet) && r.URL.Path > "/lake/20" {
					once.Do(func() { close(first) })
					select {
					case <-release:
					case <-r.Context().Done():
					}
				}
				return false
			})
			id := l.bring(t, managertest.Vars{"existing": "FAIL"})
			<-first
			managertest.Eventually(t, "what came is noted", func() bool { return l.look(t, id).ObjectTransfer.Files >= 18 })
			stop(t, l)
			close(release)
			if got := l.ends(t, id, task.StatusDone); got.ObjectTransfer.Files != 40 || got.ObjectTransfer.Failed != 0 {
				t.Errorf("%+v", got)
			}
			twice := 0
			for key, body := range objects {
				if !bytes.Equal(l.file(t, key), body) {
					t.Errorf("%s is another", key)
				}
				if l.count("GET /lake/"+key) > 1 {
					twice++
				}
			}
			if twice > 8 {
				t.Errorf("%d objects were asked for again", twice)
			}
		})
	}
}

func TestCancelExport(t *testing.T) {
	l := newLake(t, nil)
	l.write(t, "large", random(130<<20))
	begun := make(chan struct{})
	var once sync.Once
	l.breaks(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("partNumber") == "3" {
			once.Do(func() { close(begun) })
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
			return true
		}
		return false
	})
	id := l.send(t, nil)
	<-begun
	if n := l.uploads(t); n != 1 {
		t.Errorf("%d unfinished uploads, want the one that is under way", n)
	}
	errs := l.m.As(t, l.A.Admin).Ask(t, `mutation($id: ID!) { deleteObjectStorage(input: {id: $id}) { id } }`, managertest.Vars{"id": l.id}, nil)
	if errs.Code() != "FAILED_PRECONDITION" || !strings.Contains(errs.String(), "Export data to lake") {
		t.Errorf("it is forgotten while a task works with it: %s", errs)
	}
	l.as.Must(t, `mutation($id: ID!) { cancelTask(input: {id: $id}) { task { status } } }`, managertest.Vars{"id": id}, nil)
	l.ends(t, id, task.StatusCancelled)
	managertest.Eventually(t, "the parts are taken back", func() bool { return l.uploads(t) == 0 })

	// It continues on request, with an upload of its own.
	l.breaks(nil)
	l.as.Must(t, `mutation($id: ID!) { retryTask(input: {id: $id}) { task { status } } }`, managertest.Vars{"id": id}, nil)
	l.ends(t, id, task.StatusDone)
	if !bytes.Equal(l.object(t, "large"), l.file(t, "large")) {
		t.Error("the object is another than its file")
	}
}

// The process that begins a multipart upload dies before it learns the id: its parts are removed,
// and uploads of others to the same key stay.
func TestNothingStaysOfAnUploadThatNobodyKnows(t *testing.T) {
	const cancel = `mutation($id: ID!) { cancelTask(input: {id: $id}) { task { status } } }`
	for name, c := range map[string]struct {
		asked bool // the storage has begun it
		end   func(t *testing.T, l *lake, id uuid.UUID)
		want  task.Status
	}{
		"killed before it is asked":     {false, func(t *testing.T, l *lake, _ uuid.UUID) { l.killManager(t) }, task.StatusDone},
		"killed before it has answered": {true, func(t *testing.T, l *lake, _ uuid.UUID) { l.killManager(t) }, task.StatusDone},
		"the answer is lost":            {true, nil, task.StatusDone},
		"cancelled before it has answered": {true, func(t *testing.T, l *lake, id uuid.UUID) {
			l.as.Must(t, cancel, managertest.Vars{"id": id}, nil)
		}, task.StatusCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLake(t, nil)
			core := minio.Core{Client: l.minio}
			others, err := core.NewMultipartUpload(t.Context(), "lake", "large", minio.PutObjectOptions{})
			if err != nil {
				t.Fatal(err)
			}
			l.write(t, "large", random(64<<20+1))
			begun := make(chan struct{})
			var once sync.Once
			l.breaks(func(w http.ResponseWriter, r *http.Request) (answered bool) {
				if r.Method == http.MethodPost && r.URL.Query().Has("uploads") {
					once.Do(func() {
						if c.asked {
							l.answer(t, r)
						}
						answered = true
						close(begun)
						if c.end == nil {
							panic(http.ErrAbortHandler)
						}
						<-r.Context().Done()
					})
				}
				return answered
			})
			id := l.send(t, nil)
			<-begun
			if c.end != nil {
				c.end(t, l, id)
			}
			l.ends(t, id, c.want)
			managertest.Eventually(t, "its parts are taken back", func() bool { return l.uploads(t) == 1 })
			if _, err := core.ListObjectParts(t.Context(), "lake", "large", others, 0, 1); err != nil {
				t.Errorf("what others send: %v", err)
			}
			if c.want == task.StatusDone && !bytes.Equal(l.object(t, "large"), l.file(t, "large")) {
				t.Error("the object is another than its file")
			}
		})
	}
}

// If a user loses access to the storage while their task runs, the task ends with the next batch.
func TestATransferEndsWithItsRights(t *testing.T) {
	for name, take := range map[string]func(t *testing.T, l *lake){
		"it becomes read-only": func(t *testing.T, l *lake) {
			l.m.As(t, l.A.Admin).Must(t, updateStorage, managertest.Vars{"in": managertest.Vars{"id": l.id, "readOnly": true}}, nil)
		},
		"he is no longer active": func(t *testing.T, l *lake) {
			l.Client.User.UpdateOneID(l.A.Member.ID).SetStatus(user.StatusInactive).ExecX(l.System(t))
			l.as = l.m.As(t, l.Superadmin) // users who can still see it
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLake(t, nil)
			for i := range 120 {
				l.write(t, fmt.Sprintf("%03d", i), []byte("x"))
			}
			begun, taken := make(chan struct{}), make(chan struct{})
			var once sync.Once
			l.breaks(func(_ http.ResponseWriter, r *http.Request) bool {
				if isObject(r, http.MethodPut) {
					once.Do(func() { close(begun) })
					<-taken
				}
				return false
			})
			id := l.send(t, nil)
			<-begun
			take(t, l)
			close(taken)
			got := l.ends(t, id, task.StatusFailed)
			if f := got.ObjectTransfer; f.Files != 100 || !strings.Contains(got.Message, "may no longer use the object storage") {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A file that changes while its parts are sent is refused, and its parts do not stay.
func TestLargeFileChangesMeanwhile(t *testing.T) {
	l := newLake(t, nil)
	l.write(t, "large", random(70<<20))
	l.write(t, "small", []byte("small"))
	var once sync.Once
	l.breaks(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("partNumber") != "" {
			once.Do(func() {
				if err := os.WriteFile(filepath.Join(l.dir, "large"), random(10), 0o644); err != nil {
					t.Error(err)
				}
			})
		}
		return false
	})
	got := l.ends(t, l.send(t, nil), task.StatusFailed)
	if f := got.ObjectTransfer; f.Failed != 1 || f.Files != 2 || !strings.Contains(got.Message, "large: the file has changed") {
		t.Errorf("%+v", got)
	}
	if n := l.uploads(t); n != 0 {
		t.Errorf("%d unfinished uploads", n)
	}
	if string(l.object(t, "small")) != "small" {
		t.Error("the other file did not go")
	}
}

func TestFullFolderStopsAnImport(t *testing.T) {
	l := newLake(t, map[string][]byte{"a": random(1 << 20), "b": random(4 << 20), "c": random(1 << 20)})
	scope := l.row(t, l.folder).QueryQuotaScope().OnlyX(l.System(t))
	su := l.m.As(t, l.Superadmin)
	const limit = `mutation($in: SetQuotaScopeInput!) { setQuotaScope(input: $in) { quotaScope { id } } }`
	su.Must(t, limit, managertest.Vars{"in": managertest.Vars{"volume": scope.VolumeID, "user": l.A.Member.ID, "limitBytes": 3 << 20}}, nil)
	id := l.bring(t, nil)
	got := l.ends(t, id, task.StatusFailed)
	if !strings.Contains(got.Message, "the folder is full") || !strings.Contains(got.Message, "limit") {
		t.Errorf("says %q", got.Message)
	}
	if _, err := os.Stat(filepath.Join(l.dir, "b")); err == nil {
		t.Error("a part of it is there")
	}
	managertest.Eventually(t, "what was on its way is gone", func() bool { return len(l.leftovers(t)) == 0 })
	su.Must(t, limit, managertest.Vars{"in": managertest.Vars{"volume": scope.VolumeID, "user": l.A.Member.ID, "limitBytes": 30 << 20}}, nil)
	l.as.Must(t, `mutation($id: ID!) { retryTask(input: {id: $id}) { task { status } } }`, managertest.Vars{"id": id}, nil)
	if got := l.ends(t, id, task.StatusDone); got.ObjectTransfer.Files != 3 {
		t.Errorf("after more room: %+v", got)
	}
}

func TestWhatIsWrongWithAnObjectStorage(t *testing.T) {
	l := newLake(t, map[string][]byte{"x/y/z": []byte("z"), "x/a": []byte("a"), "w": []byte("w")})
	admin, member := l.m.As(t, l.A.Admin), l.as
	n := 0
	inside := strings.Replace(l.gate.url, "127.0.0.1", "127.0.0.2", 1) // 127.0.0.1 is allowed by the operator
	su := l.m.As(t, l.Superadmin)
	const unproven = "does not answer a listing"
	for name, c := range map[string]struct {
		as          *managertest.Client
		more        managertest.Vars
		field, says string
	}{
		"nothing":        {admin, nil, "", ""},
		"the bucket":     {su, managertest.Vars{"bucket": "no-such"}, "bucket", "bucket"},
		"the access key": {su, managertest.Vars{"accessKeyID": "nobody"}, "accessKeyId", "access key"},
		"the secret":     {su, managertest.Vars{"secret": "another"}, "secret", "signature"},
		"the region":     {su, managertest.Vars{"region": "eu-north-9"}, "region", "region"},
		"nobody listens": {su, managertest.Vars{"endpoint": "http://127.0.0.1:1"}, "endpoint", "cannot be reached: connection refused"},
		"no such host":   {su, managertest.Vars{"endpoint": "http://no-such-host.invalid"}, "endpoint", "cannot be reached: the host does not exist"},
		"metadata":       {su, managertest.Vars{"endpoint": "http://169.254.169.254"}, "endpoint", "is not on the Internet"},
		"inside":         {su, managertest.Vars{"endpoint": inside}, "endpoint", "is not on the Internet"},
		// Only the operator learns which services listen where.
		"a domain's bucket":          {admin, managertest.Vars{"bucket": "no-such"}, "endpoint", unproven},
		"a domain's secret":          {admin, managertest.Vars{"secret": "another"}, "endpoint", unproven},
		"a domain's, nobody listens": {admin, managertest.Vars{"endpoint": "http://127.0.0.1:1"}, "endpoint", unproven},
		"a domain's, another server": {admin, managertest.Vars{"endpoint": l.m.URL}, "endpoint", unproven},
		"a domain's, inside":         {admin, managertest.Vars{"endpoint": inside}, "endpoint", unproven},
		"a domain's, metadata":       {admin, managertest.Vars{"endpoint": "http://169.254.169.254"}, "endpoint", unproven},
		"a user's, inside":           {member, managertest.Vars{"domain": nil, "endpoint": inside}, "endpoint", unproven},
		"a user's, metadata":         {member, managertest.Vars{"domain": nil, "endpoint": "http://[fd00:ec2::254]"}, "endpoint", unproven},
	} {
		t.Run(name, func(t *testing.T) {
			n++
			in := l.storage(fmt.Sprint("s", n), "lake", managertest.Vars{"domain": l.A.ID})
			maps.Copy(in, c.more)
			id := addStorage(t, c.as, in)
			var got struct {
				TestObjectStorage struct {
					Ok             bool
					Message, Field string
				}
			}
			c.as.Must(t, testStorage, managertest.Vars{"id": id}, &got)
			r := got.TestObjectStorage
			if r.Ok != (c.field == "") || r.Field != c.field || !strings.Contains(r.Message, c.says) {
				t.Errorf("%+v, want field %q and %q", r, c.field, c.says)
			}
			if strings.Contains(r.Message, "secret of the test") || strings.Contains(r.Message, "X-Amz-") {
				t.Errorf("a secret shows in %q", r.Message)
			}
		})
	}
	t.Run("its input", func(t *testing.T) {
		for field, more := range map[string]managertest.Vars{
			"name": {"name": ""}, "endpoint": {"endpoint": "http://user:pw@host"}, "bucket": {"bucket": "A"},
			"region": {"region": "a b"}, "prefix": {"prefix": "a/../b"}, "secret": {"secret": ""},
		} {
			errs := member.Ask(t, createStorage, managertest.Vars{"in": l.storage("bad", "lake", more)}, nil)
			if errs.Code() != "INVALID_ARGUMENT" || errs[0].Extensions.Field != field {
				t.Errorf("%s: %s", field, errs)
			}
		}
	})
	t.Run("too many", func(t *testing.T) {
		own := func(n int) managertest.Vars {
			return l.storage(fmt.Sprint("own-", n), "lake", managertest.Vars{"domain": nil})
		}
		there := l.Client.ObjectStorage.Query().Where(objectstorage.OwnerID(l.A.Member.ID)).CountX(l.System(t))
		for n := range 100 - there {
			l.Client.ObjectStorage.Create().SetName(fmt.Sprint("many-", n)).SetEndpoint("https://s3.example.org").SetBucket("lake").SetOwnerID(l.A.Member.ID).ExecX(l.System(t))
		}
		if errs := member.Ask(t, createStorage, managertest.Vars{"in": own(100)}, nil); errs.Code() != "RESOURCE_EXHAUSTED" || errs[0].Extensions.Limit != "100" {
			t.Errorf("the 101st: %s", errs)
		}
		l.Client.ObjectStorage.Delete().Where(objectstorage.NameHasPrefix("many-")).ExecX(l.System(t))
	})
	t.Run("another endpoint", func(t *testing.T) {
		errs := admin.Ask(t, updateStorage, managertest.Vars{"in": managertest.Vars{"id": l.id, "endpoint": "https://thief.example.org"}}, nil)
		if errs.Code() != "INVALID_ARGUMENT" || errs[0].Extensions.Field != "secret" {
			t.Errorf("the secret goes elsewhere: %s", errs)
		}
		errs = admin.Ask(t, updateStorage, managertest.Vars{"in": managertest.Vars{"id": l.id, "accessKeyID": "another"}}, nil)
		if errs.Code() != "INVALID_ARGUMENT" || errs[0].Extensions.Field != "secret" {
			t.Errorf("the secret goes with another key: %s", errs)
		}
	})
	t.Run("read only", func(t *testing.T) {
		admin.Must(t, updateStorage, managertest.Vars{"in": managertest.Vars{"id": l.id, "readOnly": true}}, nil)
		errs := member.Ask(t, exportObjects, managertest.Vars{"in": l.input(nil)}, nil)
		if errs.Code() != "FAILED_PRECONDITION" {
			t.Errorf("export to what is for reading: %s", errs)
		}
	})
	t.Run("browse", func(t *testing.T) {
		var got struct {
			Node struct {
				Objects struct {
					Objects []struct {
						Name, Path string
						Directory  bool
						Size       int64
					}
					EndCursor *string
				}
			}
		}
		const browse = `query($id: ID!, $path: String, $first: Int, $after: String) { node(id: $id) { ... on ObjectStorage {
			objects(path: $path, first: $first, after: $after) { objects { name path directory size } endCursor } } } }`
		var seen []string
		for after := (*string)(nil); ; after = got.Node.Objects.EndCursor {
			member.Must(t, browse, managertest.Vars{"id": l.id, "path": "x", "first": 1, "after": after}, &got)
			for _, o := range got.Node.Objects.Objects {
				seen = append(seen, fmt.Sprint(o.Path, o.Directory))
			}
			if got.Node.Objects.EndCursor == nil {
				break
			}
		}
		own := addStorage(t, member, l.storage("own", "lake", nil))
		errs := l.m.As(t, l.Superadmin).Ask(t, browse, managertest.Vars{"id": own}, nil)
		if errs.Code() != "PERMISSION_DENIED" {
			t.Errorf("a superadmin looks into what is a member's own: %s", errs)
		}
		slices.Sort(seen)
		if want := []string{"x/afalse", "x/ytrue"}; !slices.Equal(seen, want) {
			t.Errorf("below x: %v, want %v", seen, want)
		}
	})
	t.Run("what is kept", func(t *testing.T) {
		l.ends(t, l.bring(t, nil), task.StatusDone)
		for _, row := range l.Client.Task.Query().AllX(l.System(t)) {
			if all := string(row.Input) + string(row.State) + row.Message + row.Title; strings.Contains(all, l.Secret) || strings.Contains(all, "X-Amz-Signature") {
				t.Errorf("a secret is kept with task %s: %s", row.ID, all)
			}
		}
		if row := l.Client.ObjectStorage.GetX(l.System(t), l.id); bytes.Contains(row.SecretSealed, []byte(l.Secret)) || len(row.SecretSealed) == 0 {
			t.Error("the secret is not sealed")
		}
	})
}
