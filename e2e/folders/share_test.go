package folders

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berthhq/berth/e2e/cluster"
)

// A user is invited at the command line, reads, gets the permission to write, writes, and loses the
// folder while they upload one file and download another. Both transfers end, the partial upload is
// not visible, and the folder disappears from their WebDAV.
func TestSharedFolderIsTakenAway(t *testing.T) {
	owner, friend := platform.User(t), platform.User(t)
	mine, his := owner.Shell(), friend.Shell()
	put(t, filepath.Join(mine.Dir, "data.bin"), make([]byte, 64<<20))
	folder := folderOn(t, owner, "disk", "thesis")
	mine.Must("folder", "put", "thesis", "data.bin")

	mine.Must("folder", "share", "thesis", friend.Email)
	if list := his.Must("folder", "invitations"); !strings.Contains(list, "thesis") || !strings.Contains(list, owner.Email) {
		t.Errorf("invitations:\n%s", list)
	}
	if r := his.Run("folder", "files", "thesis"); r.Code == 0 {
		t.Error("who has not accepted sees the files")
	}
	his.Must("folder", "accept", "thesis")
	his.Must("folder", "files", "thesis")
	put(t, filepath.Join(his.Dir, "result.bin"), make([]byte, 32<<20))
	if r := his.Run("folder", "put", "thesis", "result.bin"); r.Code == 0 || !strings.Contains(r.Stderr, "may") {
		t.Errorf("a user with read-only access writes: %d %s", r.Code, r.Stderr)
	}
	mine.Must("folder", "share", "thesis", friend.Email, "--permission", "read-write")

	var got struct{ CreateDownload struct{ URL string } }
	friend.Query(`mutation($f: ID!) { createDownload(input: {vfolder: $f, path: "data.bin"}) { url } }`, map[string]any{"f": folder}, &got)
	dav := func() int {
		t.Helper()
		at, err := url.Parse(got.CreateDownload.URL)
		if err != nil {
			t.Fatal(err)
		}
		at.Path, at.RawQuery = "/dav/shared/"+owner.Email+"/thesis/data.bin", ""
		req, err := http.NewRequestWithContext(t.Context(), http.MethodHead, at.String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("me", friend.Token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if code := dav(); code != http.StatusOK {
		t.Errorf("WebDAV answers %d", code)
	}
	slow, err := http.Get(got.CreateDownload.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Body.Close()
	if _, err := io.CopyN(io.Discard, slow.Body, 1<<20); err != nil {
		t.Fatal(err)
	}
	wire := platform.Wires[0]
	wire.Hold(16 << 20)
	cmd := his.Command("folder", "put", "thesis", "result.bin")
	var output bytes.Buffer
	cmd.Stderr = &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	held(t, wire)

	mine.Must("folder", "unshare", "thesis", friend.Email)
	for err == nil { // the platform must end the transfer by its deadline
		time.Sleep(10 * time.Millisecond)
		_, err = io.CopyN(io.Discard, slow.Body, 32<<10)
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the download ends with %v", err)
	}
	wire.Restore()
	if err := cmd.Wait(); err == nil || !strings.Contains(output.String(), "result.bin") {
		t.Errorf("the upload: %v, %s", err, output.String())
	}
	cluster.Eventually(t, "WebDAV no longer shows it", func() bool { return dav() == http.StatusNotFound })
	if resp, err := http.Get(got.CreateDownload.URL); err != nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("the ticket still counts: %v %v", resp, err)
	} else {
		resp.Body.Close()
	}
	if r := his.Run("folder", "files", "thesis"); r.Code == 0 {
		t.Error("the friend sees the files")
	}
	if names := mine.Must("folder", "files", "thesis"); strings.Contains(names, "result") || !strings.Contains(names, "data.bin") {
		t.Errorf("the owner sees:\n%s", names)
	}
}
