package integration

import (
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// webdav sends a WebDAV request to the storage proxy with an access token.
func webdav(t *testing.T, d *clustertest.Proxy, method, path, token, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, d.Address+"/dav"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth("me", token)
	r.Header.Set("Depth", "1")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

func accessToken(t *testing.T, as *managertest.Client, name, scopes string) (id uuid.UUID, secret string) {
	t.Helper()
	var got struct {
		CreateAccessToken struct {
			AccessToken struct{ ID uuid.UUID }
			Secret      string
		}
	}
	as.Must(t, `mutation($n: String!) { createAccessToken(input: {name: $n, scopes: [`+strings.ToUpper(scopes)+`]}) { accessToken { id } secret } }`,
		managertest.Vars{"n": name}, &got)
	return got.CreateAccessToken.AccessToken.ID, got.CreateAccessToken.Secret
}

// Over WebDAV, an access token gives the permissions of its user, limited by its scopes, until it
// is revoked.
func TestFoldersOverWebDAV(t *testing.T) {
	c := clustertest.New(t, 0)
	d := clustertest.NewProxy(t, c)
	if _, errs := clustertest.CreateFolder(t, c.Member, managertest.Vars{"name": "own"}); len(errs) > 0 {
		t.Fatal(errs)
	}
	lead := c.Manager.As(t, c.A.Lead)
	project := managertest.Vars{"name": "team", "project": c.A.Project.ID}
	if _, errs := clustertest.CreateFolder(t, lead, project); len(errs) > 0 {
		t.Fatal(errs)
	}
	if _, errs := clustertest.CreateFolder(t, lead, managertest.Vars{"name": "read", "project": c.A.Project.ID, "permission": "READ_ONLY"}); len(errs) > 0 {
		t.Fatal(errs)
	}
	if _, errs := clustertest.CreateFolder(t, lead, managertest.Vars{"name": "private"}); len(errs) > 0 {
		t.Fatal(errs)
	}
	id, full := accessToken(t, c.Member, "files", "FOLDERS")
	_, reader := accessToken(t, c.Member, "reads", "READ")
	_, admin := accessToken(t, c.Manager.As(t, c.Superadmin), "all", "admin, folders")
	team := "/projects/" + c.A.Project.Name
	managertest.Eventually(t, "the manager can be asked", func() bool {
		status, _ := webdav(t, d, "PROPFIND", "/", full, "")
		return status == http.StatusMultiStatus
	})
	for _, x := range []struct {
		name, method, path, token string
		status                    int
	}{
		{"writes to their own", "PUT", "/mine/own/f", full, 201},
		{"writes to the project's", "PUT", team + "/team/f", full, 201},
		{"reads with a token that only reads", "GET", "/mine/own/f", reader, 200},
		{"writes with it", "PUT", "/mine/own/g", reader, 403},
		{"reads a read-only folder", "PROPFIND", team + "/read", full, 207},
		{"writes to it", "PUT", team + "/read/f", full, 403},
		{"reads a private folder", "PROPFIND", "/shared/" + c.A.Lead.Email + "/private", full, 404},
		{"looks into the folders of others as superadmin", "PROPFIND", team + "/team", admin, 404},
		{"an invalid token", "PROPFIND", "/", "berth_guess", 401},
	} {
		content := ""
		if x.method == "PUT" {
			content = "text"
		}
		if status, body := webdav(t, d, x.method, x.path, x.token, content); status != x.status {
			t.Errorf("%s: %d %s, want %d", x.name, status, body, x.status)
		}
	}
	c.Member.Must(t, `mutation($id: ID!) { revokeAccessToken(input: {id: $id}) { accessToken { id } } }`, managertest.Vars{"id": id}, nil)
	managertest.Eventually(t, "the token is refused", func() bool {
		status, _ := webdav(t, d, "PROPFIND", "/mine/own/f", full, "")
		return status == http.StatusUnauthorized
	})
	if status, _ := webdav(t, d, "GET", "/mine/own/f", reader, ""); status != http.StatusOK {
		t.Errorf("the other token: %d", status)
	}
	d.Stop() // the proxy reports the file activity to the manager when it stops
	type entries struct {
		Edges []struct {
			Node struct {
				Action, ActorEmail, ClientAddress, Message string
				EntityID, CredentialID                     *uuid.UUID
			}
		}
	}
	var trail struct{ Changed, Read entries }
	c.Manager.As(t, c.Superadmin).Must(t, `fragment of on AuditEntryConnection { edges { node { action actorEmail clientAddress message entityId credentialId } } }
		{ changed: auditEntries(where: {action: "changeFiles"}) { ...of } read: auditEntries(where: {action: "readFiles"}) { ...of } }`, nil, &trail)
	var got []string
	for _, e := range append(trail.Changed.Edges, trail.Read.Edges...) {
		n := e.Node
		if n.EntityID == nil || n.CredentialID == nil || n.ActorEmail != c.A.Member.Email || n.ClientAddress != "127.0.0.1" {
			t.Errorf("activity: %+v", n)
		}
		_, did, _ := strings.Cut(n.Message, " UTC: ")
		got = append(got, n.Action+": "+did)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{
		`changeFiles: wrote 1 (4 bytes). wrote "f"`, `changeFiles: wrote 1 (4 bytes). wrote "f"`,
		`readFiles: read 2 (8 bytes). read "f", "f"`,
	}, got); diff != "" {
		t.Error(diff)
	}
}

// A client with an SSH key of a user logs in over SFTP as this user, until the key is deleted.
func TestFoldersOverSFTP(t *testing.T) {
	c := clustertest.New(t, 0)
	d := clustertest.NewProxy(t, c)
	d.Stop()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d.Config.SFTP = l
	d.StartProxy(t, nil)
	if _, errs := clustertest.CreateFolder(t, c.Member, managertest.Vars{"name": "own"}); len(errs) > 0 {
		t.Fatal(errs)
	}
	var made struct {
		CreateSSHKey struct {
			SSHKey     struct{ ID uuid.UUID }
			PrivateKey string
		}
	}
	c.Member.Must(t, `mutation { createSshKey(input: {name: "laptop"}) { sshKey { id } privateKey } }`, nil, &made)
	key, err := ssh.ParsePrivateKey([]byte(made.CreateSSHKey.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	_, reader := accessToken(t, c.Member, "reads", "READ")
	enter := func(user string, by ssh.AuthMethod) (*sftp.Client, error) {
		conn, err := ssh.Dial("tcp", l.Addr().String(), &ssh.ClientConfig{
			User: user, Auth: []ssh.AuthMethod{by}, HostKeyCallback: ssh.InsecureIgnoreHostKey(), Timeout: 30 * time.Second,
		})
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { conn.Close() })
		return sftp.NewClient(conn)
	}
	var mine *sftp.Client
	managertest.Eventually(t, "the key is good", func() bool {
		mine, err = enter(c.A.Member.Email, ssh.PublicKeys(key))
		return err == nil
	})
	if err := mine.Mkdir("/mine/own/dir"); err != nil {
		t.Error(err)
	}
	if _, err := enter(c.A.Lead.Email, ssh.PublicKeys(key)); err == nil {
		t.Error("the key opens the folders of others")
	}
	reads, err := enter("anybody", ssh.Password(reader))
	if err != nil {
		t.Fatal(err)
	}
	if list, err := reads.ReadDir("/mine/own"); err != nil || len(list) != 1 || list[0].Name() != "dir" {
		t.Errorf("list: %v %v", list, err)
	}
	if err := reads.Mkdir("/mine/own/more"); !os.IsPermission(err) {
		t.Errorf("a token that reads makes a directory: %v", err)
	}
	c.Member.Must(t, `mutation($id: ID!) { deleteSshKey(input: {id: $id}) { id } }`, managertest.Vars{"id": made.CreateSSHKey.SSHKey.ID}, nil)
	managertest.Eventually(t, "the key is refused", func() bool {
		_, err := mine.ReadDir("/mine/own")
		return err != nil
	})
}
