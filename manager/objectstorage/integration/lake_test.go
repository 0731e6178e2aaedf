package integration

import (
	"crypto/rand"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/minio/minio-go/v7"

	"github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

const createStorage = `mutation($in: CreateObjectStorageInput!) { createObjectStorage(input: $in) { objectStorage { id } } }`

const importObjects = `mutation($in: ImportFolderInput!) { importFolder(input: $in) { task { id } } }`

const exportObjects = `mutation($in: ExportFolderInput!) { exportFolder(input: $in) { task { id } } }`

// lake is a bucket of a domain and a folder of a member.
type lake struct {
	*clustertest.Proxy
	*gate
	id, folder uuid.UUID
	dir        string // directory of the folder
	minio      *minio.Client
}

func newLake(t *testing.T, objects map[string][]byte) *lake {
	t.Helper()
	c := clustertest.New(t, 0)
	l := &lake{gate: newGate(t), Proxy: clustertest.NewProxy(t, c)}
	l.minio = l.bucket(t, "lake", objects)
	l.id = addStorage(t, c.Manager.As(t, c.A.Admin), l.storage("lake", "lake", managertest.Vars{"domain": c.A.ID}))
	var errs managertest.Errors
	if l.folder, errs = clustertest.CreateFolder(t, c.Member, managertest.Vars{"name": "data"}); len(errs) > 0 {
		t.Fatal(errs)
	}
	l.dir = filepath.Join(l.Root, l.FolderRow(t, l.folder).Path)
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

// bring starts an import of the lake, send an export.
func (l *lake) bring(t *testing.T, in managertest.Vars) uuid.UUID {
	t.Helper()
	var got struct {
		ImportFolder struct{ Task struct{ ID uuid.UUID } }
	}
	l.Member.Must(t, importObjects, managertest.Vars{"in": l.input(in)}, &got)
	return got.ImportFolder.Task.ID
}

func (l *lake) send(t *testing.T, in managertest.Vars) uuid.UUID {
	t.Helper()
	var got struct {
		ExportFolder struct{ Task struct{ ID uuid.UUID } }
	}
	l.Member.Must(t, exportObjects, managertest.Vars{"in": l.input(in)}, &got)
	return got.ExportFolder.Task.ID
}

func (l *lake) input(in managertest.Vars) managertest.Vars {
	out := managertest.Vars{"vfolder": l.folder, "objectStorage": l.id}
	maps.Copy(out, in)
	return out
}

// moved is a transfer task as the API returns it.
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
	l.Member.Must(t, `query($id: ID!) { node(id: $id) { ... on Task { status message done total
		objectTransfer { files filesTotal bytes bytesTotal left failed failures { path error } } } } }`, managertest.Vars{"id": id}, &got)
	return got.Node
}

// ends waits until a task has ended.
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

// leftovers lists temporary files of transfers.
func (l *lake) leftovers(t *testing.T) (names []string) {
	t.Helper()
	scope := filepath.Join(l.Root, strings.Split(l.FolderRow(t, l.folder).Path, "/")[0], ".upload")
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
