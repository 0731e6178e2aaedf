package integration

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// The limit of folders is enforced for concurrent requests, and the limit of bytes of a quota scope
// at the upload.
func TestFoldersAreBounded(t *testing.T) {
	c := clustertest.New(t, 0)
	d := clustertest.NewProxy(t, c)
	if _, errs := clustertest.CreateFolder(t, c.Member, managertest.Vars{"name": "first"}); len(errs) > 0 {
		t.Fatal(errs)
	}
	id := c.CreatePolicy(t, c.A.Member, "three folders", managertest.Vars{"maxVfolders": 3, "maxScopeBytes": 200_000})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if _, errs := clustertest.CreateFolder(t, c.Member, managertest.Vars{"name": fmt.Sprint("more", i)}); len(errs) > 0 &&
				(errs.Code() != "RESOURCE_EXHAUSTED" || !strings.Contains(errs.String(), "three folders") || errs[0].Extensions.Limit != "3") {
				t.Error(errs)
			}
		})
	}
	all.Wait()
	mine := d.Client.Vfolder.Query().Where(vfolder.OwnerID(c.A.Member.ID), vfolder.DeletedAtIsNil()).AllX(d.System(t))
	if len(mine) != 3 {
		t.Fatalf("%d folders", len(mine))
	}
	if _, errs := clustertest.CreateFolder(t, c.Manager.As(t, c.A.Lead), managertest.Vars{"name": "anothers"}); len(errs) > 0 {
		t.Errorf("another's folder: %s", errs)
	}
	upload := func(size int) int {
		t.Helper()
		var up struct {
			CreateUpload struct {
				Uploads []struct{ URL, Ticket string }
			}
		}
		c.Member.Must(t, `mutation($id: ID!, $n: Int64!) { createUpload(input: {vfolder: $id, files: [{path: "f", size: $n}]}) { uploads { url ticket } } }`,
			managertest.Vars{"id": mine[0].ID, "n": size}, &up)
		r, _ := http.NewRequestWithContext(t.Context(), "POST", up.CreateUpload.Uploads[0].URL, nil)
		r.Header = http.Header{"Authorization": {"Bearer " + up.CreateUpload.Uploads[0].Ticket}, "Tus-Resumable": {"1.0.0"}, "Upload-Length": {fmt.Sprint(size)}}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	managertest.Eventually(t, "the proxy keeps the limit", func() bool { return upload(300_000) == http.StatusInsufficientStorage })
	if status := upload(50_000); status != http.StatusCreated {
		t.Errorf("below the limit: %d", status)
	}
	c.Member.Must(t, trashFolder, managertest.Vars{"id": mine[1].ID}, nil)
	if _, errs := clustertest.CreateFolder(t, c.Member, managertest.Vars{"name": "in-its-place"}); len(errs) > 0 {
		t.Errorf("in place of a deleted one: %s", errs)
	}
	if errs := c.Member.Ask(t, `mutation($id: ID!) { restoreVfolder(input: {id: $id}) { vfolder { id } } }`, managertest.Vars{"id": mine[1].ID}, nil); errs.Code() != "RESOURCE_EXHAUSTED" {
		t.Errorf("back from the trash beyond the limit: %s", errs)
	}
	c.UpdatePolicy(t, id, managertest.Vars{"maxVfolders": 1, "maxScopeBytes": 2_000_000}) // existing files stay
	if n := d.Client.Vfolder.Query().Where(vfolder.OwnerID(c.A.Member.ID), vfolder.DeletedAtIsNil()).CountX(d.System(t)); n != 3 {
		t.Errorf("%d folders after the limit was lowered", n)
	}
	managertest.Eventually(t, "the proxy has the raised limit", func() bool { return upload(300_000) == http.StatusCreated })
}
