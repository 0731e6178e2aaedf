package volume_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/storagetest"
)

func all[T any](t *testing.T, stream grpc.ServerStreamingClient[T], err error) (list []*T) {
	t.Helper()
	for {
		var one *T
		if err == nil {
			one, err = stream.Recv()
		}
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, one)
	}
}

// The folders and scopes on a volume are reported, including entries of unknown origin.
func TestWhatLiesOnDisk(t *testing.T) {
	h := storagetest.New(t)
	hex := func(id string) string { return strings.ReplaceAll(id, "-", "") }
	planted, folder := uuid.NewString(), uuid.NewString()
	bare := hex(uuid.NewString()) // a scope without folders
	f := hex(folder)
	gone, coming := uuid.NewString(), uuid.NewString()
	for _, dir := range []string{
		hex(planted) + "/" + f[:2] + "/" + f[2:4] + "/" + f[4:] + "/data", bare,
		"stray", hex(h.Ref.Scope) + "/other", hex(h.Ref.Scope) + "/" + f[:2] + "/odd", "lost+found", ".snapshot",
		hex(h.Ref.Scope) + "/.deleted/" + hex(gone), hex(h.Ref.Scope) + "/.arriving/" + hex(coming) + "/copy",
		hex(h.Ref.Scope) + "/.arriving/files-" + hex(gone),
	} {
		if err := os.MkdirAll(filepath.Join(h.Mount, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(h.Mount, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	scopes, err := h.API.ListScopes(h.Ctx(), &storagepb.ListScopesRequest{Volume: "main"})
	var ids []string
	for _, s := range all(t, scopes, err) {
		ids = append(ids, hex(s.Scope))
	}
	slices.Sort(ids)
	want := []string{hex(planted), bare, hex(h.Ref.Scope)}
	slices.Sort(want)
	if d := cmp.Diff(want, ids); d != "" {
		t.Error(d)
	}
	list := func(scope string) map[string]string {
		stream, err := h.API.ListFolders(h.Ctx(), &storagepb.ListFoldersRequest{Volume: "main", Scope: scope})
		got := map[string]string{}
		for _, e := range all(t, stream, err) {
			got[e.Path] = e.State.String() + " " + e.Scope + " " + e.Folder
		}
		return got
	}
	rel, _ := filepath.Rel(h.Mount, h.Path)
	mine := map[string]string{
		rel:                                     "PRESENT " + h.Ref.Scope + " " + h.Ref.Folder,
		hex(h.Ref.Scope) + "/other":             "UNKNOWN " + h.Ref.Scope + " ",
		hex(h.Ref.Scope) + "/" + f[:2] + "/odd": "UNKNOWN " + h.Ref.Scope + " ",
		hex(h.Ref.Scope) + "/.deleted/" + hex(gone):    "DELETING " + h.Ref.Scope + " " + gone,
		hex(h.Ref.Scope) + "/.arriving/" + hex(coming): "ARRIVING " + h.Ref.Scope + " " + coming,
	}
	if d := cmp.Diff(mine, list(h.Ref.Scope)); d != "" {
		t.Error(d)
	}
	mine["stray"], mine["file"] = "UNKNOWN  ", "UNKNOWN  "
	mine[hex(planted)+"/"+f[:2]+"/"+f[2:4]+"/"+f[4:]] = "PRESENT " + planted + " " + folder
	if d := cmp.Diff(mine, list("")); d != "" {
		t.Error(d)
	}
}
