package sessionfile_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/sessionfile"
)

func listed(t *testing.T, body string) (sessionfile.Page, []string) {
	t.Helper()
	var page sessionfile.Page
	if err := json.Unmarshal([]byte(body), &page); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	names := []string{}
	for _, f := range page.Files {
		names = append(names, f.Name)
	}
	return page, names
}

// Files are written, listed, read, moved and deleted, and the audit log has it all.
func TestFilesOfASession(t *testing.T) {
	w := newWorld(t)
	p := w.as(w.A.Member)
	text := strings.Repeat("0123456789", 300_000)
	status, body, _ := p.do("PUT", "/content?path=data/big.txt&modified=1700000000000", text)
	if status != 200 || !strings.Contains(body, `"modifiedAt":"2023-11-14T22:13:20Z"`) {
		t.Fatalf("%d %s", status, body)
	}
	status, body, _ = p.do("GET", "?path=data", "")
	p.do("PUT", "/content?path=run.sh&mode=750", "")
	if info, err := os.Stat(w.machine.home + "/run.sh"); err != nil || info.Mode() != 0o750 {
		t.Errorf("%v, %v", info, err)
	}
	page, names := listed(t, body)
	if d := cmp.Diff([]string{"big.txt"}, names); d != "" || status != 200 || page.Home != w.machine.home || page.Files[0].Size != 3_000_000 || page.Files[0].Mode != "-rw-r--r--" {
		t.Errorf("%d %s %+v", status, d, page)
	}
	status, body, h := p.do("GET", "/content?path=data/big.txt", "")
	if status != 200 || body != text || h.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("%d, %d bytes, %v", status, len(body), h)
	}
	etag := h.Get("ETag")
	for name, c := range map[string]struct {
		header []string
		status int
		body   string
	}{
		"a range":            {[]string{"Range", "bytes=10-19"}, 206, "0123456789"},
		"the end":            {[]string{"Range", "bytes=-3"}, 206, "789"},
		"behind the end":     {[]string{"Range", "bytes=9000000-"}, 416, ""},
		"too many ranges":    {[]string{"Range", "bytes=" + strings.Repeat("0-1,", 20) + "5-6"}, 416, ""},
		"another If-Range":   {[]string{"Range", "bytes=10-19", "If-Range", `"x"`}, 200, text},
		"the same If-Range":  {[]string{"Range", "bytes=10-19", "If-Range", etag}, 206, "0123456789"},
		"If-None-Match":      {[]string{"If-None-Match", etag}, 304, ""},
		"across two answers": {[]string{"Range", "bytes=1048570-1048585"}, 206, "0123456789012345"},
	} {
		if status, body, _ := p.do("GET", "/content?path=data/big.txt", "", c.header...); status != c.status || c.status < 400 && body != c.body {
			t.Errorf("%s: %d, %.40q", name, status, body)
		}
	}
	if status, body, h := p.do("HEAD", "/content?path=data/big.txt", ""); status != 200 || body != "" || h.Get("Content-Length") != "3000000" {
		t.Errorf("HEAD: %d %v", status, h)
	}
	for _, c := range []struct{ path, body, want string }{
		{"/directories", `{"paths":["new/deep","data"]}`, `{"results":[{"path":"new/deep"},{"path":"data","code":"ALREADY_EXISTS","error":"\"HOME/data\" already exists"}]}`},
		{"/moves", `{"items":[{"from":"data/big.txt","to":"new/other.txt"}]}`, `{"results":[{"path":"data/big.txt"}]}`},
		{"/deletions", `{"paths":["data","missing"]}`, `{"results":[{"path":"data"},{"path":"missing","code":"NOT_FOUND","error":"\"HOME/missing\" not found"}]}`},
		{"/deletions", `{"paths":["new"],"recursive":true}`, `{"results":[{"path":"new"}]}`},
	} {
		if status, body, _ := p.do("POST", c.path, c.body); status != 200 || body != strings.ReplaceAll(c.want, "HOME", w.machine.home) {
			t.Errorf("%s %s: %d %s", c.path, c.body, status, body)
		}
	}
	for action, want := range map[string][]string{
		"writeSessionFile":       {`OK "data/big.txt"`, `OK "run.sh"`},
		"listSessionFiles":       {`OK "data"`},
		"makeSessionDirectories": {`ALREADY_EXISTS "new/deep" and 1 more: path: "` + w.machine.home + `/data" already exists`},
		"moveSessionFiles":       {`OK "data/big.txt" to "new/other.txt"`},
		"deleteSessionFiles":     {`NOT_FOUND "data" and 1 more: path: "` + w.machine.home + `/missing" not found`, `OK "new"`},
	} {
		if d := cmp.Diff(want, w.rows(action)); d != "" {
			t.Errorf("%s: %s", action, d)
		}
	}
	if n := len(w.rows("readSessionFile")); n != 8 { // ranges count, HEAD and refused ranges do not
		t.Errorf("%d rows of reading", n)
	}
	if n := w.machine.starts(); n > 2 {
		t.Errorf("%d commands were started for requests that came one after the other", n)
	}
}

func TestArchiveOfADirectory(t *testing.T) {
	w := newWorld(t)
	p := w.as(w.A.Member)
	p.do("PUT", "/content?path=data/a.txt", "text")
	status, body, h := p.do("GET", "/archive?path=data", "")
	z, err := zip.NewReader(strings.NewReader(body), int64(len(body)))
	if err != nil || status != 200 || len(z.File) != 1 || z.File[0].Name != "a.txt" || !strings.Contains(h.Get("Content-Disposition"), `"data.zip"`) {
		t.Errorf("%d %v %v", status, err, h)
	}
	if status, body, _ := p.do("GET", "/archive?path=data&format=rar", ""); status != 400 {
		t.Errorf("%d %s", status, body)
	}
	if status, body, _ := p.do("GET", "/archive?path=missing", ""); status != 404 {
		t.Errorf("%d %s", status, body)
	}
}

// A user who cannot enter a session can reach none of its files, and the attempt is in the audit
// log.
func TestWhoReachesFiles(t *testing.T) {
	w := newWorld(t)
	w.as(w.A.Member).do("PUT", "/content?path=secret", "s")
	token := func(scopes ...access.TokenScope) *person {
		made, err := w.auth.CreateAccessToken(w.As(t, w.A.Member), auth.CreateAccessTokenInput{Name: string(scopes[0]), Scopes: scopes})
		if err != nil {
			t.Fatal(err)
		}
		return &person{w, *made.Secret, made.AccessToken.ID}
	}
	routes := [][2]string{
		{"GET", "?path="}, {"GET", "/content?path=secret"}, {"GET", "/archive?path="}, {"PUT", "/content?path=secret"},
		{"POST", "/directories"}, {"POST", "/moves"}, {"POST", "/deletions"},
		{"GET", "/upload?path=secret&upload=0123456789"}, {"DELETE", "/upload?path=secret&upload=0123456789"},
	}
	for name, c := range map[string]struct {
		p    *person
		want int
	}{
		"nobody":                     {&person{w: w}, 401},
		"a stranger":                 {w.as(w.B.Member), 404},
		"a colleague in no project":  {w.as(w.A.Loner), 404},
		"an admin of the project":    {w.as(w.A.Lead), 403},
		"a token that reads":         {token(access.TokenRead), 403},
		"a token without the scope":  {token(access.TokenFolders), 404},
		"an admin of another domain": {w.as(w.B.Admin), 404},
	} {
		for _, route := range routes {
			got, body, _ := c.p.do(route[0], route[1], `{"paths":["secret"]}`)
			if got != c.want && !(c.want == 404 && got == 403) {
				t.Errorf("%s %s as %s: %d %s", route[0], route[1], name, got, body)
			}
		}
	}
	if n := w.machine.starts(); n != 1 {
		t.Errorf("%d commands were started in the container", n)
	}
	denied := 0
	for _, row := range w.rows("readSessionFile") {
		if strings.HasPrefix(row, "PERMISSION_DENIED") {
			denied++
		}
	}
	if denied == 0 {
		t.Error("the audit log has no denial")
	}
	if status, body, _ := w.as(w.A.Member).do("GET", "?kernel="+w.session.ID.String(), ""); status != 404 {
		t.Errorf("a kernel of another session: %d %s", status, body)
	}
}

// A file is never shown as a page of Berth, whatever its name and content are.
func TestContentIsNeverAPage(t *testing.T) {
	w := newWorld(t)
	p := w.as(w.A.Member)
	for _, name := range []string{"page.html", "a.svg", "x\"; filename=evil.exe", "a\r\nSet-Cookie: x=y", "\u202egnp.exe", "ü\\%.js"} {
		if err := os.WriteFile(filepath.Join(w.machine.home, name), []byte("<script>alert(1)</script>"), 0o644); err != nil {
			t.Fatal(err)
		}
		status, _, h := p.do("GET", "/content?path="+url.QueryEscape(name), "")
		if status != 200 || !strings.HasPrefix(h.Get("Content-Security-Policy"), "sandbox") || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Set-Cookie") != "" {
			t.Errorf("%q: %d %v", name, status, h)
		}
		said := h.Get("Content-Disposition")
		if !strings.HasPrefix(said, `attachment; filename="`) || strings.Count(said, `"`) != 2 || strings.Contains(said, "\u202e") {
			t.Errorf("%q: %q", name, said)
		}
	}
}

// A chunk after the other, with a connection that breaks between them.
func TestUploadInParts(t *testing.T) {
	w := newWorld(t)
	p := w.as(w.A.Member)
	text := strings.Repeat("0123456789", 100_000)
	at := fmt.Sprintf("/content?path=big&upload=0123456789abcdef&size=%d", len(text))
	if status, body, _ := p.do("PUT", at, text[:4]); status != 200 || body != `{"offset":4,"file":null}` {
		t.Errorf("%d %s", status, body)
	}
	if status, body, _ := p.do("GET", "/content?path=big", ""); status != 404 {
		t.Errorf("the half of a file: %d %s", status, body)
	}
	// A client that disconnects in the middle of a part.
	r, sender := io.Pipe()
	go func() { _, _ = sender.Write([]byte(text[4:500_000])); sender.CloseWithError(io.ErrUnexpectedEOF) }()
	if resp, err := p.send("PUT", at+"&offset=4", r, 900_000); err == nil {
		resp.Body.Close()
	}
	var there sessionfile.Written
	wait.Until(t, "the upload is continued", func() bool {
		_, body, _ := p.do("GET", "/upload?path=big&upload=0123456789abcdef", "")
		if err := json.Unmarshal([]byte(body), &there); err != nil {
			t.Fatal(err)
		}
		if there.Offset <= 4 {
			return false
		}
		status, _, _ := p.do("PUT", fmt.Sprintf("%s&offset=%d", at, there.Offset), text[there.Offset:])
		return status == 200
	})
	if status, body, _ := p.do("GET", "/content?path=big", ""); status != 200 || body != text {
		t.Errorf("%d, %d bytes", status, len(body))
	}
	if d := cmp.Diff([]string{`OK "big"`}, w.rows("writeSessionFile")[len(w.rows("writeSessionFile"))-1:]); d != "" {
		t.Error(d)
	}
	p.do("PUT", at, "01")
	if status, _, _ := p.do("DELETE", "/upload?path=big&upload=0123456789abcdef", ""); status != 204 {
		t.Errorf("discard: %d", status)
	}
	_, body, _ := p.do("GET", "", "")
	if _, names := listed(t, body); len(names) != 1 {
		t.Errorf("%q is left", names)
	}
}

// An editor does not overwrite another user's version.
func TestConditionalUpload(t *testing.T) {
	w := newWorld(t)
	p := w.as(w.A.Member)
	_, _, h := p.do("PUT", "/content?path=f", "1")
	if status, _, _ := p.do("PUT", "/content?path=f", "2", "If-None-Match", "*"); status != 409 {
		t.Errorf("a new file over an old one: %d", status)
	}
	if status, _, _ := p.do("PUT", "/content?path=f", "3", "If-Match", h.Get("ETag")); status != 200 {
		t.Errorf("the file that was read: %d", status)
	}
	if status, _, _ := p.do("PUT", "/content?path=f", "4", "If-Match", h.Get("ETag")); status != 412 {
		t.Errorf("a changed file: %d", status)
	}
}

func TestRequestsThatAreNotValid(t *testing.T) {
	w := newWorld(t)
	p := w.as(w.A.Member)
	long := strings.Repeat("x", 5000)
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{"GET", "?path=%00", "", 400},
		{"GET", "?path=%ff", "", 400},
		{"GET", "?path=" + long, "", 400},
		{"GET", "?first=0", "", 400},
		{"GET", "?first=1001", "", 400},
		{"GET", "?after=" + long, "", 400},
		{"GET", "?after=zz", "", 400},
		{"GET", "?path=/etc/passwd", "", 409},
		{"GET", "/content?path=/dev/zero", "", 409},
		{"GET", "/content?path=/", "", 409},
		{"GET", "/archive?path=/proc", "", 409},
		{"PUT", "/content?path=", "", 400},
		{"PUT", "/content?path=a/", "", 400},
		{"PUT", "/content?path=a/..", "", 400},
		{"PUT", "/content?path=a%0ab", "", 400},
		{"PUT", "/content?path=" + strings.Repeat("x", 256), "", 400},
		{"PUT", "/content?path=a&size=-1", "", 400},
		{"PUT", "/content?path=a&mode=4755", "", 400},
		{"PUT", "/content?path=a&size=1", "12", 400},
		{"PUT", "/content?path=a&offset=1&size=3", "12", 400},
		{"PUT", "/content?path=a&upload=../../../etc/cron.d/x", "", 400},
		{"PUT", "/content?path=/proc/version", "x", 404},
		{"PUT", "/content?path=/dev/null", "x", 409},
		{"POST", "/directories", `{"paths":[]}`, 400},
		{"POST", "/directories", `{"paths":["a` + "\u0085" + `"]}`, 400},
		{"POST", "/directories", `{"paths":["a"]} {}`, 400},
		{"POST", "/directories", `{"path":"a"}`, 400},
		{"POST", "/directories", `{"paths":["` + strings.Repeat("x", 2<<20) + `"]}`, 413},
		{"POST", "/deletions", `{"paths":[""]}`, 400},
		{"POST", "/moves", `{"items":[{"from":"a","to":""}]}`, 400},
		{"POST", "/moves", `{"paths":["a"]}`, 400},
	} {
		if status, body, _ := p.do(c.method, c.path, c.body); status != c.want {
			t.Errorf("%s %.60s %.60s: %d, want %d: %.200s", c.method, c.path, c.body, status, c.want, body)
		}
	}
	if names, err := os.ReadDir(w.machine.home); err != nil || len(names) > 0 {
		t.Errorf("%v is left, %v", names, err)
	}
}

// A transfer ends at once when the right to it ends.
func TestRevokedTransfer(t *testing.T) {
	w := newWorld(t)
	big, err := os.Create(filepath.Join(w.machine.home, "big"))
	if err != nil {
		t.Fatal(err)
	}
	_ = big.Truncate(4 << 30)
	big.Close()
	revoke := func(p *person) {
		w.auth.Disconnect(w.ctx, p.id)
	}
	t.Run("download", func(t *testing.T) {
		p := w.as(w.A.Member)
		resp, err := p.request("GET", "/content?path=big", "")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := io.ReadFull(resp.Body, make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		revoke(p)
		if n, err := io.Copy(io.Discard, resp.Body); err == nil {
			t.Errorf("the download was completed, %d bytes", n)
		}
	})
	t.Run("upload of a client that is silent", func(t *testing.T) {
		p := w.as(w.A.Member)
		r, sender := io.Pipe()
		defer sender.Close()
		failed := make(chan error, 1)
		go func() {
			resp, err := p.send("PUT", "/content?path=up", r, 1<<30)
			if err == nil {
				_, _ = io.ReadAll(resp.Body)
				resp.Body.Close()
				if resp.StatusCode == 200 {
					err = fmt.Errorf("the upload was accepted")
				}
			}
			failed <- err
		}()
		if _, err := sender.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		wait.Until(t, "the container receives it", func() bool {
			names, _ := os.ReadDir(w.machine.home)
			return len(names) == 2
		})
		revoke(p)
		select {
		case err := <-failed:
			t.Logf("the client gets: %v", err)
		case <-time.After(time.Minute):
			t.Fatal("the upload continues")
		}
		wait.Until(t, "nothing of the upload is left", func() bool {
			names, _ := os.ReadDir(w.machine.home)
			return len(names) == 1
		})
	})
}

// If the container ends, the download breaks, so that a partial file never looks complete. An
// upload continues in the next container.
func TestContainerEndsInTheMiddle(t *testing.T) {
	w := newWorld(t)
	p := w.as(w.A.Member)
	big, _ := os.Create(filepath.Join(w.machine.home, "big"))
	_ = big.Truncate(1 << 30)
	big.Close()
	resp, err := p.request("GET", "/content?path=big", "")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadFull(resp.Body, make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	w.machine.kill()
	if _, err := io.Copy(io.Discard, resp.Body); err == nil {
		t.Error("the download looks complete")
	}
	// The connection in the pool has ended too.
	p.do("GET", "", "")
	w.machine.kill()
	if status, body, _ := p.do("GET", "", ""); status != 200 {
		t.Errorf("after the end of a kept connection: %d %s", status, body)
	}
}

func TestShrinkingFileBreaksTheDownload(t *testing.T) {
	w := newWorld(t)
	p := w.as(w.A.Member)
	path := filepath.Join(w.machine.home, "log")
	f, _ := os.Create(path)
	_ = f.Truncate(1 << 30)
	f.Close()
	resp, err := p.request("GET", "/content?path=log", "")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadFull(resp.Body, make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	_ = os.Truncate(path, 10)
	if _, err := io.Copy(io.Discard, resp.Body); err == nil {
		t.Error("the download looks complete")
	}
	// A file of the kernel has no size, but a content.
	if status, body, _ := p.do("GET", "/content?path=/proc/version", ""); status != 200 || !strings.HasPrefix(body, "Linux") {
		t.Errorf("%d %q", status, body)
	}
}

// The user of a container can replace the runner's answers by any others.
func TestHostileContainer(t *testing.T) {
	w := newWorld(t)
	p := w.as(w.A.Member)
	frame := func(text string) string {
		return fmt.Sprintf(`printf 'h\0\0\%03o\%03o'; printf %%s '%s'; exec cat >/dev/null`, len(text)>>8, len(text)&255, text)
	}
	for name, c := range map[string]struct{ script, path string }{
		"no answer, and the end":  {"exit 0", ""},
		"an error":                {"exit 3", ""},
		"garbage":                 {"head -c 100000 /dev/zero", ""},
		"a frame of 4 GiB":        {`printf 'h\377\377\377\377'; exec cat /dev/zero`, ""},
		"no list":                 {frame(`{}`), ""},
		"a negative size":         {frame(`{"info":{"size":-5,"path":"/x"}}`), "/content?path=x"},
		"an endless size":         {frame(`{"info":{"size":9000000000000000000,"path":"/x"}}`), "/content?path=x"},
		"no data for an archive":  {frame(`{"failure":{"class":"nonsense","message":"\u001b[2J\u202e"}}`), "/archive?path=x"},
		"more results than asked": {frame(`{"results":[{"path":"a"},{"path":"b"}]}`), "POST"},
	} {
		w.machine.takeOver(c.script)
		method, path, body := "GET", c.path, ""
		if path == "POST" {
			method, path, body = "POST", "/directories", `{"paths":["a"]}`
		}
		status, said, _ := p.do(method, path, body)
		if status < 400 || strings.ContainsAny(said, "\x1b\u202e") || strings.Contains(said, "INTERNAL") {
			t.Errorf("%s: %d %s", name, status, said)
		}
		w.machine.kill()
	}
	w.machine.takeOver(frame(`{"info":{"size":3,"path":"/x\r\nSet-Cookie: a=b","tag":"\"\r\nSet-Cookie: a=b"}}`))
	resp, err := p.request("HEAD", "/content?path=x", "")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.Header.Get("Set-Cookie") != "" || resp.Header.Get("ETag") != "" {
		t.Errorf("%v", resp.Header)
	}
}

// Eight transfers of a person run at once; a ninth is refused, and those of others go on.
func TestTransfersAreLimited(t *testing.T) {
	w := newWorld(t)
	p := w.as(w.A.Member)
	big, _ := os.Create(filepath.Join(w.machine.home, "big"))
	_ = big.Truncate(1 << 30)
	big.Close()
	var open []*http.Response
	for range 8 {
		resp, err := p.request("GET", "/content?path=big", "")
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("%v, %v", resp, err)
		}
		open = append(open, resp)
	}
	if status, body, h := p.do("GET", "/content?path=big", ""); status != 429 || !strings.Contains(body, `"limit":"8"`) || h.Get("Retry-After") == "" {
		t.Errorf("%d %s", status, body)
	}
	if status, _, _ := p.do("GET", "", ""); status != 200 {
		t.Errorf("a listing: %d", status)
	}
	for _, resp := range open {
		resp.Body.Close()
	}
	wait.Until(t, "another one is accepted", func() bool {
		status, _, _ := p.do("GET", "/content?path=big", "", "Range", "bytes=0-9")
		return status == 206
	})
}

func TestEmptyFile(t *testing.T) {
	w := newWorld(t)
	p := w.as(w.A.Member)
	if status, body, _ := p.do("PUT", "/content?path=empty", ""); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	if status, body, _ := p.do("GET", "/content?path=empty", ""); status != 200 || body != "" {
		t.Errorf("%d %q", status, body)
	}
	var b bytes.Buffer
	for i := range 1200 {
		fmt.Fprintf(&b, "%d", i)
		if err := os.WriteFile(filepath.Join(w.machine.home, fmt.Sprint("f", i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, body, _ := p.do("GET", "?first=1000", "")
	page, first := listed(t, body)
	_, body, _ = p.do("GET", "?first=1000&after="+page.Next, "")
	last, second := listed(t, body)
	if len(first) != 1000 || len(second) != 201 || last.Next != "" {
		t.Errorf("%d and %d entries", len(first), len(second))
	}
}
