package transfer

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

func TestCompare(t *testing.T) {
	file, dir, link := entry{kind: "file"}, entry{kind: "directory"}, entry{kind: "symlink"}
	for name, c := range map[string]struct {
		from, to tree
		same     bool
		want     string // without --delete
		tidy     string // with --delete
	}{
		"all new":                        {from: tree{"a": dir, "a/b": file, "c": file}, want: "mkdir a, download a/b, download c", tidy: "mkdir a, download a/b, download c"},
		"the same":                       {from: tree{"a": file}, to: tree{"a": file}, same: true},
		"changed":                        {from: tree{"a": file}, to: tree{"a": file}, want: "download a", tidy: "download a"},
		"gone":                           {to: tree{"a": dir, "a/b": file, "a b": file}, tidy: "delete a, delete a b"},
		"file for directory":             {from: tree{"a": file}, to: tree{"a": dir, "a/b": file}, want: "leave a", tidy: "delete a, download a"},
		"directory for file":             {from: tree{"a": dir, "a/b": file}, to: tree{"a": file}, want: "leave a", tidy: "delete a, mkdir a, download a/b"},
		"link for file":                  {from: tree{"a": link}, to: tree{"a": file}},
		"unreadable entry for directory": {from: tree{"a": link}, to: tree{"a": dir, "a/b": file, "a/c": dir, "a/c/d": file}},
		"empty directory":                {from: tree{"e": dir}, want: "mkdir e", tidy: "mkdir e"},
	} {
		t.Run(name, func(t *testing.T) {
			for tidy, want := range map[bool]string{false: c.want, true: c.tidy} {
				d := compare(c.from, c.to, func(string) bool { return c.same }, tidy)
				var got []string
				for _, ch := range append(append(d.way, d.come...), d.extra...) {
					got = append(got, ch.action+" "+ch.path)
				}
				if text := strings.Join(got, ", "); text != want {
					t.Errorf("tidy %v: %s, want %s", tidy, text, want)
				}
			}
		})
	}
}

func TestUnchanged(t *testing.T) {
	fine := time.Date(2026, 5, 1, 12, 0, 0, 123_456_789, time.UTC)
	whole := fine.Truncate(time.Second)
	for _, c := range []struct {
		name  string
		there entry
		same  bool
	}{
		{"the same", entry{size: 1, modified: fine}, true},
		{"counted in microseconds", entry{size: 1, modified: fine.Truncate(time.Microsecond)}, true},
		{"counted in seconds", entry{size: 1, modified: whole}, true},
		{"changed again in that second", entry{size: 1, modified: fine.Add(time.Second / 4)}, false},
		{"another second", entry{size: 1, modified: whole.Add(-time.Second)}, false},
		{"another size", entry{size: 2, modified: fine}, false},
	} {
		if got := unchanged(entry{size: 1, modified: fine}, c.there); got != c.same {
			t.Errorf("%s: unchanged is %v", c.name, got)
		}
	}
}

func TestSides(t *testing.T) {
	for args, want := range map[[2]string]string{
		{"./src", "data"}: "./src data true", {"src", "data:"}: "src data: true", {"data:x", "src"}: "src data:x false",
		{"data", "/src"}: "/src data false", {"./a:b", "data:"}: "./a:b data: true", {"a", "b"}: "", {"a:", "b:"}: "", {"./a", "./b"}: "",
	} {
		local, there, up, err := sides(args[0], args[1])
		if got := fmt.Sprint(local, " ", there, " ", up); err == nil && got != want || (err != nil) != (want == "") {
			t.Errorf("%v: %s, %v", args, got, err)
		}
	}
}

// store is a folder behind the fake server: paths, and contents of files; nil is a
// directory.
type store struct {
	mu    sync.Mutex
	files map[string][]byte
	times map[string]time.Time
	open  map[string]*strings.Builder // uploads by path
	bad   string                      // a path that cannot be uploaded
}

func newStore(t *testing.T) (*clitest.Server, *store) {
	f := newServer(t)
	s := &store{files: map[string][]byte{}, times: map[string]time.Time{}, open: map[string]*strings.Builder{}}
	f.Data("Vfolders", `{"vfolders":{"edges":[{"node":{"id":"f-1","name":"data"}}],"pageInfo":{}}}`)
	f.Answer["Files"] = s.list
	f.Answer["CreateDirectories"] = s.onPaths(func(p string) { s.files[p] = nil })
	f.Answer["DeleteFiles"] = s.onPaths(func(p string) {
		for q := range s.files {
			if q == p || strings.HasPrefix(q, p+"/") {
				delete(s.files, q)
			}
		}
	})
	f.Answer["CreateUpload"] = func(vars json.RawMessage) string {
		var v struct {
			Input struct{ Files []struct{ Path string } }
		}
		_ = json.Unmarshal(vars, &v)
		var all []string
		for _, file := range v.Input.Files {
			if file.Path == s.bad {
				return `{"code":"INVALID_ARGUMENT","message":"a bad name"}`
			}
			all = append(all, fmt.Sprintf(`{"path":%q,"url":"/up","ticket":%q,"expiresAt":"2030-01-01T00:00:00Z"}`, file.Path, url.PathEscape(file.Path)))
		}
		return `{"createUpload":{"uploads":[` + strings.Join(all, ",") + `]}}`
	}
	f.Answer["CreateDownload"] = func(vars json.RawMessage) string {
		var v struct{ Input struct{ Path string } }
		_ = json.Unmarshal(vars, &v)
		return fmt.Sprintf(`{"createDownload":{"url":"/down/%s","expiresAt":"2030-01-01T00:00:00Z"}}`, url.PathEscape(v.Input.Path))
	}
	f.Rest = s.transfer
	return f, s
}

func (s *store) list(vars json.RawMessage) string {
	var v struct{ Path string }
	_ = json.Unmarshal(vars, &v)
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []string{}
	for p, data := range s.files {
		if dir := path.Dir(p); dir == v.Path || dir == "." && v.Path == "" {
			kind := map[bool]string{true: "DIRECTORY", false: "FILE"}[data == nil]
			b, _ := json.Marshal(map[string]any{"name": path.Base(p), "path": p, "type": kind, "size": len(data), "modifiedAt": s.times[p]})
			all = append(all, string(b))
		}
	}
	return `{"node":{"page":{"files":[` + strings.Join(all, ",") + `],"endCursor":null}}}`
}

func (s *store) onPaths(do func(string)) func(json.RawMessage) string {
	return func(vars json.RawMessage) string {
		var v struct{ Input struct{ Paths []string } }
		_ = json.Unmarshal(vars, &v)
		s.mu.Lock()
		defer s.mu.Unlock()
		var all []string
		for _, p := range v.Input.Paths {
			do(p)
			b, _ := json.Marshal(map[string]any{"path": p, "error": nil})
			all = append(all, string(b))
		}
		return `{"payload":{"results":[` + strings.Join(all, ",") + `]}}`
	}
}

func (s *store) transfer(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, _ := url.PathUnescape(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	switch r.Method {
	case http.MethodPost:
		s.open[at], s.times[at] = &strings.Builder{}, said(r)
		w.Header().Set("Location", "/up/1")
		if r.Header.Get("Upload-Length") == "0" {
			s.files[at] = []byte{}
		}
		w.WriteHeader(http.StatusCreated)
	case http.MethodPatch:
		_, _ = io.Copy(s.open[at], r.Body)
		s.files[at] = []byte(s.open[at].String())
		w.Header().Set("Upload-Offset", fmt.Sprint(s.open[at].Len()))
		w.WriteHeader(http.StatusNoContent)
	case http.MethodGet:
		_, _ = w.Write(s.files[strings.TrimPrefix(r.URL.Path, "/down/")])
	}
}

// said returns the modification time that an upload sends.
func said(r *http.Request) time.Time {
	encoded, _ := strings.CutPrefix(r.Header.Get("Upload-Metadata"), "mtime ")
	text, err := base64.StdEncoding.DecodeString(encoded)
	sec, nsec, ok := strings.Cut(string(text), ".")
	s, serr := strconv.ParseInt(sec, 10, 64)
	n, nerr := strconv.ParseInt(nsec, 10, 64)
	if err != nil || !ok || serr != nil || nerr != nil {
		return clitest.Now
	}
	return time.Unix(s, n)
}

// plant creates local files with a modification time before the test's current time.
func plant(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, name)
		_ = os.MkdirAll(filepath.Dir(file), 0o755)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_ = os.Chtimes(file, clitest.Now.Add(-time.Hour), clitest.Now.Add(-time.Hour))
	}
}

func (s *store) has() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := map[string]string{}
	for p, data := range s.files {
		got[p] = string(data)
		if data == nil {
			got[p] = "directory"
		}
	}
	return got
}

func TestSyncUp(t *testing.T) {
	f, s := newStore(t)
	dir := t.TempDir()
	plant(t, dir, map[string]string{"a": "one", "sub/b c": "two", "sub/line\nbreak": "three"})
	_ = os.Mkdir(filepath.Join(dir, "empty"), 0o755)
	_ = os.Symlink("a", filepath.Join(dir, "link"))
	s.files["old"], s.files["old/x"] = nil, []byte("x")
	want := map[string]string{"a": "one", "sub": "directory", "sub/b c": "two", "sub/line\nbreak": "three",
		"empty": "directory", "old": "directory", "old/x": "x"}
	r := f.Run("folder", "sync", "-v", dir, "data:")
	if diff := cmp.Diff(want, s.has()); diff != "" || r.Code != 0 || !strings.Contains(r.Errors, "link: a link") || strings.Count(r.Errors, "upload ") != 3 {
		t.Fatal(diff, r)
	}
	// Unchanged files are not sent again.
	posts := f.Count("POST /up")
	if r := f.Run("folder", "sync", dir, "data:"); r.Code != 0 || f.Count("POST /up") != posts {
		t.Errorf("again: %+v", r)
	}
	plant(t, dir, map[string]string{"a": "ONE"})
	if r := f.Run("folder", "sync", dir, "data:"); r.Code != 0 || s.has()["a"] != "one" {
		t.Errorf("the same size and time: %+v", r)
	}
	if r := f.Run("folder", "sync", "--checksum", dir, "data:"); r.Code != 0 || s.has()["a"] != "ONE" || f.Count("POST /up") != posts+1 {
		t.Errorf("by contents: %+v", r)
	}
	// An older file is uploaded too: any difference in time counts.
	for ago, goes := range map[time.Duration]int{time.Hour + 900*time.Millisecond: 0, 2 * time.Hour: 1} {
		posts = f.Count("POST /up")
		_ = os.Chtimes(filepath.Join(dir, "a"), clitest.Now.Add(-ago), clitest.Now.Add(-ago))
		if r := f.Run("folder", "sync", dir, "data:"); r.Code != 0 || f.Count("POST /up") != posts+goes {
			t.Errorf("changed %s ago: %+v", ago, r)
		}
		_ = os.Chtimes(filepath.Join(dir, "a"), clitest.Now.Add(-time.Hour), clitest.Now.Add(-time.Hour))
		f.Run("folder", "sync", dir, "data:")
	}
	// Deletion needs a confirmation, and a dry run changes nothing.
	if r := f.Run("folder", "sync", "--delete", dir, "data:"); r.Code != cli.ExitUsage || !strings.Contains(r.Errors, "--yes") {
		t.Errorf("unasked: %+v", r)
	}
	if r := f.Run("folder", "sync", "--delete", "--dry-run", dir, "data:"); r.Code != 0 || !strings.Contains(r.Out, "delete") || f.Count("DeleteFiles") != 0 {
		t.Errorf("dry run: %+v", r)
	}
	if r := f.Run("folder", "sync", "--delete", "--yes", dir, "data:"); r.Code != 0 || s.has()["old"] != "" || s.has()["sub"] == "" {
		t.Errorf("delete: %+v, %v", r, s.has())
	}
}

func TestSyncDown(t *testing.T) {
	f, s := newStore(t)
	dir := filepath.Join(t.TempDir(), "new")
	s.files["run"], s.files["run/out"], s.files["run/empty"], s.files["other"] = nil, []byte("result"), nil, []byte("x")
	s.times["run/out"] = clitest.Now.Add(-time.Hour)
	if r := f.Run("folder", "sync", "data:run", dir); r.Code != 0 {
		t.Fatal(r)
	}
	got, err := os.ReadFile(filepath.Join(dir, "out"))
	info, _ := os.Stat(filepath.Join(dir, "out"))
	if err != nil || string(got) != "result" || !info.ModTime().Equal(clitest.Now.Add(-time.Hour)) {
		t.Errorf("%q, %v, %v", got, info, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "empty")); err != nil || !info.IsDir() {
		t.Errorf("the empty directory: %v", err)
	}
	if r := f.Run("folder", "sync", "data:run", dir); r.Code != 0 || f.Count("CreateDownload") != 1 {
		t.Errorf("again: %+v", r)
	}
	// Downloaded files are not uploaded again.
	if r := f.Run("folder", "sync", dir, "data:run"); r.Code != 0 || f.Count("POST /up") != 0 {
		t.Errorf("back up: %+v", r)
	}
	plant(t, dir, map[string]string{"mine": "x", partPrefix + "1": "half"})
	if r := f.Run("folder", "sync", "--delete", "-y", "data:run", dir); r.Code != 0 {
		t.Error(r)
	}
	left, _ := os.ReadDir(dir)
	if len(left) != 2 {
		t.Errorf("left: %v", left)
	}
}

// One bad file does not stop the others.
func TestPutGoesOn(t *testing.T) {
	f, s := newStore(t)
	dir := t.TempDir()
	plant(t, dir, map[string]string{"a": "1", "b": "2", "c": "3"})
	s.bad = "b"
	r := f.Run("folder", "put", "-r", "data", dir+"/.")
	if r.Code != cli.ExitInvalid || !strings.Contains(r.Errors, "1 path failed") || !strings.Contains(r.Errors, "2 files") {
		t.Errorf("%+v", r)
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "c": "3"}, s.has()); diff != "" {
		t.Error(diff)
	}
}

func TestGetDirectory(t *testing.T) {
	f, s := newStore(t)
	dir := t.TempDir()
	s.files["d"], s.files["d/x"], s.files["d/e"] = nil, []byte("text"), nil
	r := f.Run("folder", "get", "-r", "data:d", dir, "-o", "json")
	var steps []step
	if err := json.Unmarshal([]byte(r.Out), &steps); err != nil || len(steps) != 2 || r.Code != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "d", "x")); err != nil || string(got) != "text" {
		t.Errorf("%q, %v", got, err)
	}
	// A name with ".." writes nothing outside of the target.
	s.files["d/../../evil"] = []byte("x")
	f.Answer["Files"] = func(json.RawMessage) string {
		return `{"node":{"page":{"files":[{"name":"evil","path":"d/../../evil","type":"FILE","size":1,"modifiedAt":"2026-01-01T00:00:00Z"}],"endCursor":null}}}`
	}
	if r := f.Run("folder", "get", "data:", filepath.Join(dir, "sub")); r.Code == 0 {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(filepath.Join(dir, "evil")); err == nil {
		t.Error("written outside")
	}
}
