package volume_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/storagetest"
)

// A search finds the same files as find(1), with any page size.
func TestSearchEqualsFind(t *testing.T) {
	h := storagetest.New(t)
	for i := range 300 {
		h.Write(fmt.Sprintf("d%d/Sub %d/file%d.TXT", i%7, i%31, i), "")
		h.Write(fmt.Sprintf("d%d/Sub %d.txt", i%7, i%31), "")
		h.Write(fmt.Sprintf("d%d/Sub %d-x/größe%d", i%7, i%31, i), "")
	}
	h.Write("txt/txt/txt/\"a\nb\".txt", "")
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(h.Path, "link.txt")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".", filepath.Join(h.Path, "loop.txt")); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"", "d3"} {
		for _, text := range []string{"txt", "SUB 1", "größe2", "nothing has this", "3"} {
			cmd := exec.Command("find", ".", "-mindepth", "1", "-iname", "*"+text+"*", "-printf", `%P\0`)
			cmd.Dir, cmd.Env = filepath.Join(h.Path, at), append(os.Environ(), "LC_ALL=C.UTF-8")
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for p := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
				if p != "" {
					want = append(want, filepath.Join(at, p))
				}
			}
			slices.Sort(want)
			for _, limit := range []uint32{1, 7, 1000} {
				got, pages := h.Search(at, text, limit)
				if d := cmp.Diff(want, got); d != "" {
					t.Fatalf("%q below %q by %d: %s", text, at, limit, d)
				}
				if limit == 1 && pages < len(want) {
					t.Errorf("%d pages of one for %d", pages, len(want))
				}
			}
		}
	}
	for name, q := range map[string]*storagepb.SearchFilesRequest{
		"no text":   {Folder: h.Ref},
		"long text": {Folder: h.Ref, Text: strings.Repeat("x", 256)},
		"cursor":    {Folder: h.Ref, Text: "x", Cursor: "?"},
		"outside":   {Folder: h.Ref, Text: "x", Path: "../.."},
		"a link":    {Folder: h.Ref, Text: "x", Path: "link.txt"},
	} {
		_, err := h.API.SearchFiles(h.Ctx(), q)
		t.Log(name)
		storagetest.WantCode(t, err, codes.InvalidArgument)
	}
}
