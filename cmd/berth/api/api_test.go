package api

import (
	"os"
	"testing"

	"github.com/berthhq/berth/cmd/berth/cli"
)

func TestAPI(t *testing.T) {
	f := newServer(t)
	f.Data("Q", `{"x":{"b":1,"a":"<&>"}}`)
	if r := f.Run("api", "query Q($n: Int, $s: String) { x }", "-F", "n=5", "-f", "s=5"); r.Code != 0 || r.Out != "{\n  \"x\": {\n    \"b\": 1,\n    \"a\": \"<&>\"\n  }\n}\n" {
		t.Errorf("%+v", r)
	}
	file := t.TempDir() + "/q.graphql"
	if err := os.WriteFile(file, []byte("query Q { x }"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := f.Run("api", "@"+file, "-o", "yaml"); r.Code != 0 || r.Out != "x:\n  b: 1\n  a: <&>\n" {
		t.Errorf("%+v", r)
	}
	f.Data("Q", `{"code":"NOT_FOUND","message":"gone"}`)
	if r := f.Run("api", "query Q { x }"); r.Code != cli.ExitNotFound || r.Errors != "berth: gone (request r-1)\n" {
		t.Errorf("%+v", r)
	}
}
