package integration

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

const shareFolder = `mutation($id: ID!, $emails: [String!]!, $p: FolderPermission!) {
	shareVfolder(input: {id: $id, emails: $emails, permission: $p}) { results { email error share { id status } } } }`

type shareResults struct {
	ShareVfolder struct {
		Results []struct {
			Email string
			Error *string
			Share *struct{ ID uuid.UUID }
		}
	}
}

// A folder is shared for reading, then for writing, and then no longer.
func TestAFolderIsShared(t *testing.T) {
	c := clustertest.New(t, 0)
	clustertest.NewProxy(t, c)
	owner, friend, admin := c.Member, c.Manager.As(t, c.A.Loner), c.Manager.As(t, c.A.Admin)
	id, errs := clustertest.CreateFolder(t, owner, managertest.Vars{"name": "data"})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	see := func(as *managertest.Client) bool {
		var got struct{ Node any }
		as.Ask(t, `query($id: ID!) { node(id: $id) { id ... on Vfolder { quotaScope { id } } } }`, managertest.Vars{"id": id}, &got)
		return got.Node != nil
	}
	const write = `mutation($id: ID!) { createDirectories(input: {vfolder: $id, paths: ["d"]}) { results { error } } }`
	const upload = `mutation($id: ID!) { createUpload(input: {vfolder: $id, files: [{path: "f", size: 1}]}) { uploads { url ticket } } }`
	const download = `mutation($id: ID!) { createDownload(input: {vfolder: $id, path: ""}) { url } }`
	may := func(as *managertest.Client, mutation string) string {
		return as.Ask(t, mutation, managertest.Vars{"id": id}, nil).Code()
	}

	if code := admin.Ask(t, shareFolder, managertest.Vars{"id": id, "emails": []string{c.A.Admin.Email}, "p": "READ_ONLY"}, nil).Code(); code != "PERMISSION_DENIED" {
		t.Errorf("an admin shares an unreadable folder with themselves: %q", code)
	}
	var got shareResults
	owner.Must(t, shareFolder, managertest.Vars{"id": id, "emails": []string{strings.ToUpper(c.A.Loner.Email), "nonsense", c.A.Member.Email, c.B.Admin.Email}, "p": "READ_ONLY"}, &got)
	results := got.ShareVfolder.Results
	if results[0].Share == nil || results[1].Error == nil || results[2].Error == nil || results[3].Share == nil {
		t.Fatalf("%+v", results)
	}
	again := shareResults{}
	owner.Must(t, shareFolder, managertest.Vars{"id": id, "emails": []string{c.A.Loner.Email}, "p": "READ_WRITE"}, &again)
	if e := again.ShareVfolder.Results[0].Error; e == nil {
		t.Error("shared twice with one person")
	}
	share := results[0].Share.ID
	on := func(as *managertest.Client, mutation, more string) managertest.Errors {
		return as.Ask(t, `mutation($id: ID!) { `+mutation+`(input: {id: $id`+more+`}) { share { status permission } } }`, managertest.Vars{"id": share}, nil)
	}

	type invitations struct {
		VfolderShares struct {
			Edges []struct {
				Node struct {
					ID                        uuid.UUID
					VfolderName, InviterEmail string
					Vfolder                   *struct{ ID uuid.UUID }
				}
			}
		}
	}
	const mine = `{ vfolderShares(mine: true, where: {status: PENDING}) { edges { node { id vfolderName inviterEmail vfolder { id } } } } }`
	var inbox, foreign invitations
	friend.Must(t, mine, nil, &inbox)
	c.Manager.As(t, c.B.Admin).Must(t, mine, nil, &foreign)
	if n := len(foreign.VfolderShares.Edges); n != 0 {
		t.Errorf("somebody of another domain finds %d invitations", n)
	}
	if len(inbox.VfolderShares.Edges) != 1 {
		t.Fatalf("%d invitations", len(inbox.VfolderShares.Edges))
	}
	if n := inbox.VfolderShares.Edges[0].Node; n.ID != share || n.VfolderName != "data" || n.InviterEmail != c.A.Member.Email || n.Vfolder != nil {
		t.Errorf("invitation %+v", n)
	}
	if see(friend) {
		t.Error("seen before it is accepted")
	}
	if code := on(owner, "acceptVfolderShare", "").Code(); code != "PERMISSION_DENIED" {
		t.Errorf("the owner accepts for the friend: %q", code)
	}
	if errs := on(friend, "acceptVfolderShare", ""); len(errs) > 0 {
		t.Fatal(errs)
	}
	if code := on(friend, "acceptVfolderShare", "").Code(); code != "FAILED_PRECONDITION" {
		t.Errorf("accepted twice: %q", code)
	}
	if !see(friend) || may(friend, download) != "" || may(friend, write) != "PERMISSION_DENIED" || may(friend, upload) != "PERMISSION_DENIED" {
		t.Errorf("for reading: download %q, write %q, upload %q", may(friend, download), may(friend, write), may(friend, upload))
	}
	if code := on(friend, "updateVfolderShare", ", permission: READ_WRITE").Code(); code != "PERMISSION_DENIED" {
		t.Errorf("a reader grants themselves the permission to write: %q", code)
	}

	if errs := on(owner, "updateVfolderShare", ", permission: READ_WRITE"); len(errs) > 0 {
		t.Fatal(errs)
	}
	if code := may(friend, write); code != "" {
		t.Errorf("for writing: %q", code)
	}
	if code := may(friend, `mutation($id: ID!) { trashVfolder(input: {id: $id}) { vfolder { id } } }`); code != "PERMISSION_DENIED" {
		t.Errorf("a writer deletes the folder: %q", code)
	}
	var up struct {
		CreateUpload struct {
			Uploads []struct{ URL, Ticket string }
		}
	}
	friend.Must(t, upload, managertest.Vars{"id": id}, &up)
	begin := func() int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, up.CreateUpload.Uploads[0].URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+up.CreateUpload.Uploads[0].Ticket)
		r.Header.Set("Tus-Resumable", "1.0.0")
		r.Header.Set("Upload-Length", "1")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if status := begin(); status != http.StatusCreated {
		t.Fatalf("upload begins: %d", status)
	}
	if errs := on(owner, "revokeVfolderShare", ""); len(errs) > 0 {
		t.Fatal(errs)
	}
	if see(friend) || may(friend, download) != "NOT_FOUND" {
		t.Error("it is still shared")
	}
	managertest.Eventually(t, "the ticket counts no longer", func() bool { return begin() == http.StatusForbidden })

	got = shareResults{}
	owner.Must(t, shareFolder, managertest.Vars{"id": id, "emails": []string{c.A.Loner.Email}, "p": "READ_WRITE_DELETE"}, &got)
	share = got.ShareVfolder.Results[0].Share.ID
	if errs := on(friend, "declineVfolderShare", ""); len(errs) > 0 || see(friend) {
		t.Errorf("declined: %s", errs)
	}
}

// A project's folder is shared with all members with one permission, and with one member with a
// permission of their own.
func TestAMembersShareGoesBeforeAllMembers(t *testing.T) {
	c := clustertest.New(t, 0)
	clustertest.NewProxy(t, c)
	lead, member := c.Manager.As(t, c.A.Lead), c.Member
	id, errs := clustertest.CreateFolder(t, lead, managertest.Vars{"name": "data", "project": c.A.Project.ID})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	write := func(as *managertest.Client) string {
		return as.Ask(t, `mutation($id: ID!) { createDirectories(input: {vfolder: $id, paths: ["d"]}) { results { error } } }`, managertest.Vars{"id": id}, nil).Code()
	}
	if code := write(member); code != "" {
		t.Fatalf("members may write: %q", code)
	}
	var got shareResults
	lead.Must(t, shareFolder, managertest.Vars{"id": id, "emails": []string{c.A.Member.Email, c.A.Loner.Email}, "p": "READ_ONLY"}, &got)
	if r := got.ShareVfolder.Results; r[0].Share == nil || r[1].Error == nil {
		t.Fatalf("%+v", r)
	}
	if code := write(member); code != "PERMISSION_DENIED" {
		t.Errorf("a reader: %q", code)
	}
	errs = member.Ask(t, `mutation($id: ID!) { revokeVfolderShare(input: {id: $id}) { share { id } } }`, managertest.Vars{"id": got.ShareVfolder.Results[0].Share.ID}, nil)
	if errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("a user removes their own restriction: %s", errs)
	}
	c.Client.Membership.Delete().ExecX(c.System(t))
	if code := write(member); code != "NOT_FOUND" {
		t.Errorf("a former member of the project: %q", code)
	}
}
