package storage_test

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
)

func (h *host) search(path, text string, limit uint32) (found []string, pages int) {
	h.t.Helper()
	q := &storagepb.SearchFilesRequest{Folder: h.ref, Path: path, Text: text, Limit: limit}
	for {
		r, err := h.api.SearchFiles(h.ctx(), q)
		if err != nil {
			h.t.Fatal(err)
		}
		pages++
		for _, f := range r.Files {
			found = append(found, f.Path)
		}
		if q.Cursor = r.NextCursor; q.Cursor == "" {
			slices.Sort(found)
			return found, pages
		}
	}
}

// A search finds what find(1) finds, whatever the pages are.
func TestSearchEqualsFind(t *testing.T) {
	h := newHost(t)
	for i := range 300 {
		h.write(fmt.Sprintf("d%d/Sub %d/file%d.TXT", i%7, i%31, i), "")
		h.write(fmt.Sprintf("d%d/Sub %d.txt", i%7, i%31), "")
		h.write(fmt.Sprintf("d%d/Sub %d-x/größe%d", i%7, i%31, i), "")
	}
	h.write("txt/txt/txt/\"a\nb\".txt", "")
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(h.path, "link.txt")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".", filepath.Join(h.path, "loop.txt")); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"", "d3"} {
		for _, text := range []string{"txt", "SUB 1", "größe2", "nothing has this", "3"} {
			cmd := exec.Command("find", ".", "-mindepth", "1", "-iname", "*"+text+"*", "-printf", `%P\0`)
			cmd.Dir, cmd.Env = filepath.Join(h.path, at), append(os.Environ(), "LC_ALL=C.UTF-8")
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
				got, pages := h.search(at, text, limit)
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
		"no text":   {Folder: h.ref},
		"long text": {Folder: h.ref, Text: strings.Repeat("x", 256)},
		"cursor":    {Folder: h.ref, Text: "x", Cursor: "?"},
		"outside":   {Folder: h.ref, Text: "x", Path: "../.."},
		"a link":    {Folder: h.ref, Text: "x", Path: "link.txt"},
	} {
		_, err := h.api.SearchFiles(h.ctx(), q)
		t.Log(name)
		wantCode(t, err, codes.InvalidArgument)
	}
}
