package image

import (
	"strings"
	"testing"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

const oneRegistry = `{"registries":{"edges":[{"node":{"id":"01900000-0000-7000-8000-0000000000f1","name":"hub","host":"hub.example.org","plainHttp":false,"createdAt":"2026-03-04T11:59:00Z","lastScannedAt":null}}],"pageInfo":{}}}`

func TestRegistryChange(t *testing.T) {
	f := newServer(t)
	said := clitest.Record(f, map[string]string{
		"Registries":     oneRegistry,
		"UpdateRegistry": `{"updateRegistry":{"registry":{"id":"01900000-0000-7000-8000-0000000000f1","name":"mirror","host":"hub.example.org","plainHttp":false,"createdAt":"2026-03-04T11:59:00Z","lastScannedAt":null}}}`,
		"DeleteRegistry": `{"deleteRegistry":{"id":"01900000-0000-7000-8000-0000000000f1"}}`,
	})
	env := map[string]string{"BERTH_TOKEN": "secret", "BERTH_URL": f.URL}
	for _, c := range []struct{ args, stdin, op, wantInput, shows string }{
		{"image registry update hub --name mirror --username robot --password-stdin", "token\n", "UpdateRegistry", `{"id":"01900000-0000-7000-8000-0000000000f1","name":"mirror","username":"robot","password":"token"}`, "mirror"},
		{"image registry update hub.example.org --plain-http=false --username=", "", "UpdateRegistry", `{"id":"01900000-0000-7000-8000-0000000000f1","plainHttp":false,"username":""}`, "hub.example.org"},
		{"image registry delete 01900000-0000-7000-8000-0000000000f1", "", "DeleteRegistry", `{"id":"01900000-0000-7000-8000-0000000000f1"}`, ""},
	} {
		r := f.RunWith(env, c.stdin, strings.Fields(c.args)...)
		if r.Code != 0 || said[c.op] != `{"input":`+c.wantInput+`}` && said[c.op] != c.wantInput || !strings.Contains(r.Out, c.shows) {
			t.Errorf("%s: %+v\nsaid %s", c.args, r, said[c.op])
		}
		if strings.Contains(r.Out+r.Errors, "token") {
			t.Errorf("%s prints the password: %+v", c.args, r)
		}
	}
	if r := f.Run("image", "registry", "delete", "nothing"); r.Code != cli.ExitNotFound {
		t.Errorf("%+v", r)
	}
}
