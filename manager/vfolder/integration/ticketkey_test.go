package integration

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/vfolderticket"
	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/internal/ticket"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// download requests the address of a file in a folder. The address contains a ticket.
func download(t *testing.T, d *clustertest.Proxy, folder uuid.UUID, path string) string {
	t.Helper()
	var got struct{ CreateDownload struct{ URL string } }
	d.Member.Must(t, `mutation($in: CreateDownloadInput!) { createDownload(input: $in) { url } }`,
		managertest.Vars{"in": managertest.Vars{"vfolder": folder, "path": path}}, &got)
	return got.CreateDownload.URL
}

func status(t *testing.T, address string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), managertest.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// ticketOf returns the ticket in an address.
func ticketOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get("ticket")
}

// earlier returns the ring with the begin of all keys but the first moved back by the given time.
func earlier(t *testing.T, ring []byte, by time.Duration) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(string(ring)) {
		since, seed, _ := strings.Cut(line, " ")
		sec, err := strconv.ParseInt(since, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if sec > 0 {
			sec -= int64(by.Seconds())
		}
		fmt.Fprintf(&b, "%d %s", sec, seed)
	}
	return b.String()
}

// The key of tickets is rotated while managers run. A ticket of the old key is valid during the
// overlap, and not after it.
func TestTheKeyOfTicketsIsChanged(t *testing.T) {
	c := clustertest.New(t, 0)
	d := clustertest.NewProxy(t, c)
	f := filled(t, d, c.Member, managertest.Vars{"name": "data"}, 1)
	old := download(t, d, f.ID, "0/0")
	if got := status(t, old); got != http.StatusOK {
		t.Fatal(got)
	}
	ring, err := ticket.LoadRing(c.Secrets) // as the managers read it
	if err != nil {
		t.Fatal(err)
	}
	keys := ring.PublicKeys()
	// The new key began an hour ago, so managers sign with it as soon as they read it.
	if _, err := ticket.Rotate(c.Secrets, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	first := func(address string) bool { // reports whether the first key signed it
		var v ticket.Verifier
		if err := v.SetKeys(keys); err != nil {
			t.Fatal(err)
		}
		_, err := v.Verify(ticketOf(t, address), ticket.Download)
		return err == nil
	}
	var fresh string
	managertest.Eventually(t, "the new key signs", func() bool {
		fresh = download(t, d, f.ID, "0/0")
		return !first(fresh)
	})
	managertest.Eventually(t, "the proxy accepts tickets of both keys", func() bool { return status(t, fresh) == http.StatusOK })
	if got := status(t, old); got != http.StatusOK {
		t.Errorf("a ticket of the old key in the overlap: %d", got)
	}
	// A day passes.
	text, err := os.ReadFile(filepath.Join(c.Secrets, "ticket.keys"))
	if err != nil {
		t.Fatal(err)
	}
	testenv.Replace(t, filepath.Join(c.Secrets, "ticket.keys"), earlier(t, text, ticket.Life))
	managertest.Eventually(t, "the old key counts no longer", func() bool { return status(t, old) == http.StatusUnauthorized })
	if got := status(t, download(t, d, f.ID, "0/0")); got != http.StatusOK {
		t.Errorf("a ticket of the new key: %d", got)
	}
	if err := ticket.Replace(c.Secrets); err != nil {
		t.Fatal(err)
	}
	managertest.Eventually(t, "a stolen key counts no longer", func() bool { return status(t, fresh) == http.StatusUnauthorized })
	managertest.Eventually(t, "its successor does", func() bool { return status(t, download(t, d, f.ID, "0/0")) == http.StatusOK })
}

// A running transfer can continue after its ticket has expired. It ends when the user loses the
// permission.
func TestTicketsAreKnownAfterTheyHaveExpired(t *testing.T) {
	c := clustertest.New(t, 0)
	d := clustertest.NewProxy(t, c)
	f := filled(t, d, c.Member, managertest.Vars{"name": "data"}, 1)
	download(t, d, f.ID, "0/0")
	row := c.Client.VfolderTicket.Query().Where(vfolderticket.VfolderID(f.ID), vfolderticket.Write(false)).OnlyX(c.System(t))
	if left := time.Until(row.ExpiresAt); left < 23*time.Hour {
		t.Errorf("the ticket is forgotten in %s", left)
	}
}
