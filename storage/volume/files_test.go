package volume_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/storagetest"
)

// Many files are copied and moved, within a folder and to another one, on one file system and
// between two.
func TestTransferFiles(t *testing.T) {
	for name, apart := range map[string]bool{"one file system": false, "two": true} {
		for _, move := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, move %v", name, move), func(t *testing.T) {
				m := newMoving(t)
				if apart {
					m.Apart("size=64m")
				}
				m.Fill()
				m.Write("taken", "old")
				want := tree(t, m.Path)
				other := m.Fresh()
				if _, err := m.API.CreateFolder(m.Ctx(), other); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(m.At(other), "taken"), []byte("theirs"), 0o644); err != nil {
					t.Fatal(err)
				}
				if err := os.Mkdir(filepath.Join(m.At(other), "dir"), 0o755); err != nil {
					t.Fatal(err)
				}
				q := &storagepb.TransferRequest{From: m.Ref, To: other, Files: storagetest.Pairs(
					"src", "dir/source", "big", "big", "link", "dir/link", "outside", "outside", "sealed", "sealed", "pipe", "pipe",
					"taken", "taken", "absent", "absent", "../x", "x", "empty", "../y", "empty", "none/empty", "sparse", "sparse",
				)}
				fails := map[string]codes.Code{
					"taken": codes.AlreadyExists, "absent": codes.NotFound, "../x": codes.InvalidArgument,
				}
				results, err := m.Transfer(move, q)
				if err != nil || len(results) != len(q.Files) {
					t.Fatal(results, err)
				}
				refused := 0
				for _, r := range results {
					if r.Path == "empty" {
						if r.Error == "" {
							t.Errorf("result %v", r)
						}
						refused++
						continue
					}
					storagetest.WantCode(t, r.Err(), fails[r.Path])
					if (r.File != nil) != (r.Error == "") {
						t.Errorf("result %v", r)
					}
				}
				if refused != 2 {
					t.Errorf("%d refusals of a file with bad targets", refused)
				}
				got := tree(t, m.At(other))
				for from, to := range map[string]string{
					"src/deep/er/run.sh": "dir/source/deep/er/run.sh", "src/deep": "dir/source/deep", "src": "dir/source",
					"link": "dir/link", "outside": "outside", "sealed/x": "sealed/x", "pipe": "pipe", "sparse": "sparse", "big": "big",
				} {
					if got[to] != want[from] {
						t.Errorf("%s is %q, was %q", to, got[to], want[from])
					}
				}
				if raw, _ := os.ReadFile(filepath.Join(m.At(other), "taken")); string(raw) != "theirs" {
					t.Errorf("overwritten: %q", raw)
				}
				left := tree(t, m.Path)
				if _, there := left["src/deep/er/run.sh"]; there == move {
					t.Errorf("the original is there: %v", there)
				}
				if left["taken"] != want["taken"] || left["empty"] != want["empty"] {
					t.Errorf("a rejected request changed: %v", left)
				}
				// If requested, a copy replaces a file, but never a directory.
				q.Files, q.Overwrite = storagetest.Pairs("taken", "taken", "again.py", "dir"), true
				if results, err = m.Transfer(move, q); err != nil || len(results) != 2 {
					t.Fatal(results, err)
				}
				for _, r := range results {
					storagetest.WantCode(t, r.Err(), map[string]codes.Code{"again.py": codes.FailedPrecondition}[r.Path])
				}
				if raw, _ := os.ReadFile(filepath.Join(m.At(other), "taken")); string(raw) != "old" {
					t.Errorf("not overwritten: %q", raw)
				}
				if left, err := os.ReadDir(filepath.Join(m.ScopeDir(m.To), ".arriving")); err == nil && len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
			})
		}
	}
}

// Within a folder, a copy is placed beside the original, and a directory is not copied into itself.
func TestCopyWithinFolder(t *testing.T) {
	h := storagetest.New(t)
	h.Write("a/b/f", "text")
	results, err := h.Transfer(false, &storagepb.TransferRequest{From: h.Ref, To: h.Ref, Files: storagetest.Pairs(
		"a", "a (copy)", "a", "a/b/c", "a/b/f", "a/b/f", "a/b/f", "f",
	)})
	if err != nil || len(results) != 4 {
		t.Fatal(results, err)
	}
	codesOf := map[codes.Code]int{}
	for _, r := range results {
		codesOf[codes.Code(r.Code)]++
	}
	if d := cmp.Diff(map[codes.Code]int{codes.OK: 2, codes.InvalidArgument: 1, codes.AlreadyExists: 1}, codesOf); d != "" {
		t.Errorf("%s %v", d, results)
	}
	for _, f := range []string{"a (copy)/b/f", "f", "a/b/f"} {
		if raw, err := os.ReadFile(filepath.Join(h.Path, f)); string(raw) != "text" {
			t.Errorf("%s: %q %v", f, raw, err)
		}
	}
	for _, n := range []int{0, 1001} {
		_, err = h.Transfer(false, &storagepb.TransferRequest{From: h.Ref, To: h.Ref, Files: make([]*storagepb.FilePair, n)})
		storagetest.WantCode(t, err, codes.InvalidArgument)
	}
}
