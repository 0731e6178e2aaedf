package audit

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

func TestAuditExport(t *testing.T) {
	f := newServer(t)
	f.Data("Users", `{"users":`+clitest.Edges(clitest.User(clitest.IDKim, "kim@b", "ACTIVE"))+`}`)
	const csv = "at,action\n2026-03-04,createUser\n"
	whole := true
	f.Rest = func(w http.ResponseWriter, r *http.Request) {
		if want := "actor=" + clitest.IDKim + "&from=2026-03-03T12%3A00%3A00Z&result=OK"; r.URL.RawQuery != want || r.URL.Path != "/export/audit.csv" {
			t.Errorf("asked for %s?%s", r.URL.Path, r.URL.RawQuery)
		}
		fmt.Fprint(w, csv)
		if !whole {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	}
	export := func(more ...string) clitest.Result {
		return f.Run(append([]string{"admin", "audit", "export", "--since", "1d", "--actor", "kim@b", "--result", "OK"}, more...)...)
	}
	if r := export(); r.Code != 0 || r.Out != csv {
		t.Errorf("to standard output: %+v", r)
	}
	path := filepath.Join(t.TempDir(), "audit.csv")
	whole = false
	if r := export(path); r.Code != cli.ExitUnavailable {
		t.Errorf("broken off: %+v", r)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Error("half a trail is left")
	}
	whole = true
	if r := export(path); r.Code != 0 || r.Out != "" {
		t.Errorf("to a file: %+v", r)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != csv {
		t.Errorf("%q, %v", b, err)
	}
	asked := f.Count("GET /export/audit.csv")
	if r := export(path); r.Code != cli.ExitConflict || f.Count("GET /export/audit.csv") != asked {
		t.Errorf("over a file: %+v", r)
	}
}
