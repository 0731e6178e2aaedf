package integration

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/minio/minio-go/v7"

	"github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/manager/managertest"
)

// killManager stops the manager, and another manager takes over.
func (l *lake) killManager(t *testing.T) {
	t.Helper()
	l.Manager.Kill()
	l.Manager = l.Start(t)
	l.Member = l.Manager.As(t, l.A.Member)
	l.Proxy.Stop()
	l.Config.Managers = []string{l.Manager.ClusterAddress()}
	l.StartProxy(t, nil)
}

// A proxy and a manager stop in the middle; no file that has arrived is transferred again.
func TestTransferGoesOn(t *testing.T) {
	objects := map[string][]byte{}
	for i := range 40 {
		objects[fmt.Sprintf("%02d", i)] = random(1000 + i)
	}
	for name, stop := range map[string]func(t *testing.T, l *lake){
		"a proxy": func(t *testing.T, l *lake) {
			l.Stop()
			l.Config.Registry = nil
			l.StartProxy(t, nil)
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
			managertest.Eventually(t, "the progress is stored", func() bool { return l.look(t, id).ObjectTransfer.Files >= 18 })
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
				t.Errorf("%d objects were requested again", twice)
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
	errs := l.Manager.As(t, l.A.Admin).Ask(t, `mutation($id: ID!) { deleteObjectStorage(input: {id: $id}) { id } }`, managertest.Vars{"id": l.id}, nil)
	if errs.Code() != "FAILED_PRECONDITION" || !strings.Contains(errs.String(), "Export data to lake") {
		t.Errorf("it is forgotten while a task works with it: %s", errs)
	}
	l.Member.Must(t, `mutation($id: ID!) { cancelTask(input: {id: $id}) { task { status } } }`, managertest.Vars{"id": id}, nil)
	l.ends(t, id, task.StatusCancelled)
	managertest.Eventually(t, "the parts are taken back", func() bool { return l.uploads(t) == 0 })

	// It continues on request, with an upload of its own.
	l.breaks(nil)
	l.Member.Must(t, `mutation($id: ID!) { retryTask(input: {id: $id}) { task { status } } }`, managertest.Vars{"id": id}, nil)
	l.ends(t, id, task.StatusDone)
	if !bytes.Equal(l.object(t, "large"), l.file(t, "large")) {
		t.Error("the object is another than its file")
	}
}

// The process that begins a multipart upload is killed before it learns the ID. Its parts are
// removed, and other uploads to the same key remain.
func TestNothingStaysOfAnUploadThatNobodyKnows(t *testing.T) {
	const cancel = `mutation($id: ID!) { cancelTask(input: {id: $id}) { task { status } } }`
	for name, c := range map[string]struct {
		asked bool // the storage has started the upload
		end   func(t *testing.T, l *lake, id uuid.UUID)
		want  task.Status
	}{
		"killed before the request": {false, func(t *testing.T, l *lake, _ uuid.UUID) { l.killManager(t) }, task.StatusDone},
		"killed before the answer":  {true, func(t *testing.T, l *lake, _ uuid.UUID) { l.killManager(t) }, task.StatusDone},
		"the answer is lost":        {true, nil, task.StatusDone},
		"cancelled before the answer": {true, func(t *testing.T, l *lake, id uuid.UUID) {
			l.Member.Must(t, cancel, managertest.Vars{"id": id}, nil)
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
				t.Errorf("uploads of others: %v", err)
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
		"the folder becomes read-only": func(t *testing.T, l *lake) {
			l.Manager.As(t, l.A.Admin).Must(t, updateStorage, managertest.Vars{"in": managertest.Vars{"id": l.id, "readOnly": true}}, nil)
		},
		"the user is no longer active": func(t *testing.T, l *lake) {
			l.Client.User.UpdateOneID(l.A.Member.ID).SetStatus(user.StatusInactive).ExecX(l.System(t))
			l.Member = l.Manager.As(t, l.Superadmin) // users who can still see it
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
			if f := got.ObjectTransfer; f.Files != 100 || !strings.Contains(got.Message, "can no longer use the object storage") {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A file that changes while its parts are sent fails, and its parts are removed.
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
	scope := l.FolderRow(t, l.folder).QueryQuotaScope().OnlyX(l.System(t))
	su := l.Manager.As(t, l.Superadmin)
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
	managertest.Eventually(t, "partial files are removed", func() bool { return len(l.leftovers(t)) == 0 })
	su.Must(t, limit, managertest.Vars{"in": managertest.Vars{"volume": scope.VolumeID, "user": l.A.Member.ID, "limitBytes": 30 << 20}}, nil)
	l.Member.Must(t, `mutation($id: ID!) { retryTask(input: {id: $id}) { task { status } } }`, managertest.Vars{"id": id}, nil)
	if got := l.ends(t, id, task.StatusDone); got.ObjectTransfer.Files != 3 {
		t.Errorf("after more room: %+v", got)
	}
}
