package transfer_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/storagetest"
)

// The permissions of a user for a folder are revoked. Earlier tickets are no longer valid and their
// transfers end. Later tickets, other folders and other users are not affected.
func TestRevokedPermission(t *testing.T) {
	h := storagetest.New(t)
	h.Write("big", string(storagetest.Random(64<<20)))
	user := uuid.New()
	sign := func(operation, path string, size int64, user, folder string, issued time.Time) string {
		c := h.Claims(operation, path, size)
		c.User, c.Folder, c.Issued = user, folder, issued
		return h.Signer.Sign(c)
	}
	since := time.Now()
	before, after := since.Add(-time.Minute), since.Add(time.Second)
	old := sign("download", "big", 0, user.String(), h.Ref.Folder, before)

	// A download and an upload are under way.
	slow := h.Get("/download?ticket=" + old)
	defer slow.Body.Close()
	if slow.StatusCode != 200 {
		t.Fatal(slow.Status)
	}
	up := sign("upload", "up", 10, user.String(), h.Ref.Folder, before)
	at := h.Begin(up, 10)
	pr, pw := io.Pipe()
	defer pw.Close()
	ended := make(chan int, 1)
	go func() {
		resp, err := h.Try(context.Background(), "PATCH", at, up, pr, "Upload-Offset", "0")
		if err != nil {
			ended <- 0
			return
		}
		ended <- resp.StatusCode
	}()
	if _, err := pw.Write([]byte("012")); err != nil {
		t.Fatal(err)
	}
	part := filepath.Join(h.Mount, strings.ReplaceAll(h.Ref.Scope, "-", ""), ".upload", filepath.Base(at)+".part")
	wait.Until(t, "first bytes", func() bool {
		st, err := os.Stat(part)
		return err == nil && st.Size() == 3
	})
	folder := uuid.MustParse(h.Ref.Folder)
	watch, err := h.API.Watch(h.Ctx(), &storagepb.WatchRequest{
		TicketKeys: [][]byte{h.Signer.PublicKey()},
		RevokedFolders: []*storagepb.RevokedFolder{
			{User: user[:], Folder: folder[:], SinceUnixMs: since.UnixMilli()},
			{User: user[:], Folder: folder[:], SinceUnixMs: since.Add(-time.Hour).UnixMilli()}, // the later time takes precedence
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Recv(); err != nil {
		t.Fatal(err)
	}
	select {
	case code := <-ended:
		if code == http.StatusNoContent {
			t.Error("the upload went on")
		}
	case <-time.After(storagetest.Timeout):
		t.Error("the upload did not end")
	}
	if n, err := io.Copy(io.Discard, slow.Body); err == nil || n >= 64<<20 {
		t.Errorf("the download went on to the end: %d bytes, %v", n, err)
	}
	other := uuid.NewString()
	for name, c := range map[string]struct {
		ticket string
		want   int
	}{
		"old ticket":        {old, 403},
		"new ticket":        {sign("download", "big", 0, user.String(), h.Ref.Folder, after), 200},
		"another user":      {sign("download", "big", 0, other, h.Ref.Folder, before), 200},
		"another folder":    {sign("download", "big", 0, user.String(), other, before), 404},
		"the time of issue": {sign("download", "big", 0, user.String(), h.Ref.Folder, time.UnixMilli(since.UnixMilli())), 200},
	} {
		resp := h.Tus("HEAD", "/download", c.ticket, nil)
		if resp.StatusCode != c.want {
			t.Errorf("%s: %s, want %d", name, resp.Status, c.want)
		}
	}
	// The connection of a client that sends nothing is ended too.
	silent, ends := io.Pipe()
	defer ends.Close()
	resp, err := h.Try(context.Background(), "PATCH", at, up, silent, "Upload-Offset", "3")
	if err != nil || resp.StatusCode != 403 {
		t.Errorf("a silent client: %v %v", resp, err)
	}
	// With a new ticket the upload continues.
	again := sign("upload", "up", 10, user.String(), h.Ref.Folder, after)
	if resp := h.Tus("HEAD", at, up, nil); resp.StatusCode != 403 {
		t.Errorf("the upload's old ticket: %s", resp.Status)
	}
	if got := h.Offset(at, again); got != 3 {
		t.Errorf("offset %d", got)
	}
}
