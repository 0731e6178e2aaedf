package sessioncopy

import (
	"archive/tar"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m) }

// container is the files of a session as the server shows them, in a directory.
type container struct {
	dir     string
	kernels []string // kernels that requests named
	cut     int      // uploads and downloads that break after some bytes
	archive func(w io.Writer)

	mu    sync.Mutex
	parts map[string][]byte // unfinished uploads
}

func newServer(t *testing.T) (*clitest.Server, *container) {
	f := clitest.New(t, func(a *cli.App) []*cobra.Command { return []*cobra.Command{Command(a)} })
	page := `{"sessions":` + clitest.Edges(`{"id":"s1","name":"train","status":"RUNNING","kernels":[
		{"id":"k0","hostname":"main","status":"RUNNING"},{"id":"k1","hostname":"sub1","status":"RUNNING"}]}`) + `}`
	f.Data("Sessions", page)
	f.Data("SessionContainers", page)
	f.Data("Viewer", `{"viewer":{"user":{"id":"u1"}}}`)
	c := &container{dir: t.TempDir(), parts: map[string][]byte{}}
	f.Rest = c.serve
	return f, c
}

func refuse(w http.ResponseWriter, status int, code, text string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"code": code, "detail": text})
}

func (c *container) serve(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := r.URL.Query()
	c.kernels = append(c.kernels, q.Get("kernel"))
	at := filepath.Join(c.dir, q.Get("path"))
	switch route := strings.TrimPrefix(r.URL.Path, "/sessions/s1/files"); {
	case route == "":
		c.list(w, at, q.Get("path"))
	case route == "/upload":
		_ = json.NewEncoder(w).Encode(map[string]any{"offset": len(c.parts[q.Get("upload")])})
	case route == "/content" && r.Method == http.MethodPut:
		c.put(w, r, at)
	case route == "/content":
		w.Header().Set("ETag", `"1"`)
		if c.cut > 0 && r.Header.Get("Range") == "" {
			c.cut--
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "01234")
			panic(http.ErrAbortHandler)
		}
		http.ServeFile(w, r, at)
	case route == "/archive":
		c.archive(w)
	case route == "/directories":
		var in struct{ Paths []string }
		_ = json.NewDecoder(r.Body).Decode(&in)
		_ = os.MkdirAll(filepath.Join(c.dir, in.Paths[0]), 0o755)
		_, _ = io.WriteString(w, `{"results":[{"path":"x","code":"ALREADY_EXISTS","error":"exists"}]}`)
	default:
		refuse(w, 404, "NOT_FOUND", route)
	}
}

func (c *container) list(w http.ResponseWriter, at, path string) {
	entries, err := os.ReadDir(at)
	if os.IsNotExist(err) {
		refuse(w, 404, "NOT_FOUND", `"/nowhere" not found`)
		return
	}
	if err != nil {
		refuse(w, 409, "FAILED_PRECONDITION", "is not a directory")
		return
	}
	files := []map[string]any{}
	for _, e := range entries {
		kind := map[bool]string{true: "DIRECTORY", false: "FILE"}[e.IsDir()]
		files = append(files, map[string]any{"name": e.Name(), "path": filepath.Join("/", path, e.Name()), "type": kind, "mode": "-rwxr-x---"})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"files": files, "next": ""})
}

func (c *container) put(w http.ResponseWriter, r *http.Request, at string) {
	q := r.URL.Query()
	offset, _ := strconv.Atoi(q.Get("offset"))
	size, _ := strconv.Atoi(q.Get("size"))
	mode, _ := strconv.ParseUint(q.Get("mode"), 8, 32)
	body, _ := io.ReadAll(r.Body)
	name := q.Get("upload")
	if c.cut > 0 && len(body) > 3 {
		c.cut--
		c.parts[name] = append(c.parts[name][:offset], body[:3]...)
		panic(http.ErrAbortHandler)
	}
	all := append(c.parts[name][:offset:offset], body...)
	out := map[string]any{"offset": len(all), "file": nil}
	c.parts[name] = all
	if len(all) == size {
		_ = os.MkdirAll(filepath.Dir(at), 0o755)
		_ = os.WriteFile(at, all, fs.FileMode(mode))
		out["file"] = map[string]string{"name": filepath.Base(at)}
	}
	_ = json.NewEncoder(w).Encode(out)
}

// contents returns the modes and texts of the files below a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		below, _ := filepath.Rel(dir, path)
		if d.IsDir() {
			all[below+"/"] = ""
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		all[below] = info.Mode().String() + " " + string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func put(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func TestCopyToASession(t *testing.T) {
	f, c := newServer(t)
	here := t.TempDir()
	put(t, here+"/a b.txt", "one", 0o640)
	put(t, here+"/empty", "", 0o600)
	put(t, here+"/tree/run.sh", "#!", 0o750)
	if err := os.MkdirAll(here+"/tree/none", 0o755); err != nil {
		t.Fatal(err)
	}
	_ = os.Symlink("..", here+"/tree/circle")
	_ = os.Symlink("run.sh", here+"/tree/link")
	c.cut = 1
	for _, args := range [][]string{
		{"cp", "-r", here + "/a b.txt", here + "/empty", here + "/tree", "train:"},
		{"cp", here + "/a b.txt", "train:new/name.txt"},
		{"cp", "-r", here + "/tree", "train:as"},
	} {
		if r := f.Run(args...); r.Code != 0 {
			t.Fatalf("%q: %+v", args, r)
		}
	}
	want := map[string]string{
		"a b.txt": "-rw-r----- one", "empty": "-rw------- ", "new/": "", "new/name.txt": "-rw-r----- one",
		"tree/": "", "tree/none/": "", "tree/run.sh": "-rwxr-x--- #!", "tree/link": "-rwxr-x--- #!",
		"as/": "", "as/none/": "", "as/run.sh": "-rwxr-x--- #!", "as/link": "-rwxr-x--- #!",
	}
	if d := cmp.Diff(want, contents(t, c.dir)); d != "" {
		t.Error(d)
	}
	for line, text := range map[string]string{
		here + "/tree":                         "is a directory; add -r",
		here + "/missing":                      "no such file",
		here + "/empty " + here + "/run":       "",
		"/dev/null":                            "neither a file nor a directory",
		here + "/empty " + here + "/tree/none": "",
	} {
		if r := f.Run(append(append([]string{"cp"}, strings.Fields(line)...), "train:nowhere/")...); r.Code == 0 || !strings.Contains(r.Errors, text) && !strings.Contains(r.Errors, "is not a directory") {
			t.Errorf("%s: %+v", line, r)
		}
	}
}

func TestCopyFromASession(t *testing.T) {
	f, c := newServer(t)
	for name, text := range map[string]string{"a.txt": "0123456789", "b.txt": "2", "c.bin": "3", "d/e.txt": "4"} {
		put(t, c.dir+"/home/"+name, text, 0o644)
	}
	c.cut = 1 // the connection breaks once, and the copy continues
	here := t.TempDir()
	if r := f.Run("cp", "train.sub1:home/*.txt", "train.sub1:home/d/e.txt", here); r.Code != 0 {
		t.Fatalf("%+v", r)
	}
	if r := f.Run("cp", "train:home/c.bin", here+"/as.bin"); r.Code != 0 {
		t.Fatalf("%+v", r)
	}
	want := map[string]string{"a.txt": "-rwxr-x--- 0123456789", "b.txt": "-rwxr-x--- 2", "e.txt": "-rwxr-x--- 4", "as.bin": "-rwxr-x--- 3"}
	if d := cmp.Diff(want, contents(t, here)); d != "" {
		t.Error(d)
	}
	if c.kernels[0] != "k1" || c.kernels[len(c.kernels)-1] != "k0" {
		t.Errorf("containers %q", c.kernels)
	}
	for source, text := range map[string]string{
		"train:home/*.csv": "no file in the session matches", "train:home/d": "is a directory; add -r",
		"train.sub7:x": "the session has: main, sub1", "train:nowhere/x": "not found", "train:home/[": "the pattern",
	} {
		if r := f.Run("cp", source, here); r.Code == 0 || !strings.Contains(r.Errors, text) {
			t.Errorf("%s: %+v", source, r)
		}
	}
}

// An archive from a container is not trusted: nothing outside of the target is written.
func TestHostileArchive(t *testing.T) {
	f, c := newServer(t)
	if err := os.MkdirAll(c.dir+"/results", 0o755); err != nil {
		t.Fatal(err)
	}
	above := t.TempDir()
	here := above + "/here"
	if err := os.Mkdir(here, 0o755); err != nil {
		t.Fatal(err)
	}
	entry := func(w *tar.Writer, kind byte, name, link, text string) {
		_ = w.WriteHeader(&tar.Header{Typeflag: kind, Name: name, Linkname: link, Size: int64(len(text)), Mode: 0o4755})
		_, _ = io.WriteString(w, text)
	}
	for name, archive := range map[string]func(w *tar.Writer){
		"a path that leads out": func(w *tar.Writer) { entry(w, tar.TypeReg, "../../out", "", "x") },
		"an absolute path":      func(w *tar.Writer) { entry(w, tar.TypeReg, above+"/out", "", "x") },
		"a link that leads out": func(w *tar.Writer) {
			entry(w, tar.TypeSymlink, "l", above, "")
			entry(w, tar.TypeReg, "l/out", "", "x")
		},
		"a hard link":            func(w *tar.Writer) { entry(w, tar.TypeLink, "l", "/etc/passwd", "") },
		"a device, and a setuid": func(w *tar.Writer) { entry(w, tar.TypeChar, "dev", "", ""); entry(w, tar.TypeReg, "s", "", "x") },
	} {
		c.archive = func(w io.Writer) {
			a := tar.NewWriter(w)
			archive(a)
			_ = a.Close()
		}
		r := f.Run("cp", "-r", "train:results", here)
		t.Logf("%s: %d %s", name, r.Code, r.Errors)
	}
	for path, text := range contents(t, above) {
		if !strings.HasPrefix(path, "here/") || strings.Contains(text, "root:") || strings.HasPrefix(text, "u") || strings.HasPrefix(text, "L") {
			t.Errorf("%s: %.40s", path, text)
		}
	}
	c.archive = func(w io.Writer) {
		a := tar.NewWriter(w)
		entry(a, tar.TypeReg, "half", "", "x")
		panic(http.ErrAbortHandler)
	}
	if r := f.Run("cp", "-r", "train:results", here); r.Code == 0 {
		t.Errorf("an archive that breaks: %+v", r)
	}
}

func TestCopyHasOneSideInASession(t *testing.T) {
	f, _ := newServer(t)
	for line, want := range map[string]string{
		"cp a b":               "no path is in a session",
		"cp a/b:c d":           "no path is in a session",
		"cp train:a other:b":   "both in a session",
		"cp train:a other:b .": "not in the same place",
		"cp a train:b .":       "not in the same place",
		"cp train:a":           "usage: berth cp",
	} {
		if r := f.Run(strings.Fields(line)...); r.Code != cli.ExitUsage || !strings.Contains(r.Errors, want) {
			t.Errorf("%s: %+v", line, r)
		}
	}
}
