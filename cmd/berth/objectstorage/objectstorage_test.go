package objectstorage_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/berthhq/berth/cmd/berth/cli"
)

func TestObjectStorage(t *testing.T) {
	f := newServer(t)
	const lake = `{"id":"o-1","name":"lake","endpoint":"https://s3.example.org","bucket":"lake","prefix":"team/","accessKeyID":"AKIA","domain":{"id":"d-1","name":"default"}}`
	said := map[string]string{}
	note := func(op, answer string) {
		f.Answer[op] = func(vars json.RawMessage) string { said[op] = string(vars); return answer }
	}
	f.Data("ObjectStorages", `{"objectStorages":{"edges":[{"node":`+lake+`}],"pageInfo":{}}}`)
	f.Data("Vfolders", `{"vfolders":{"edges":[{"node":{"id":"f-1","name":"data"}}],"pageInfo":{}}}`)
	f.Data("Viewer", `{"viewer":{"user":{"id":"u-1","domain":{"id":"d-1","name":"default"}}}}`)
	note("CreateObjectStorage", `{"payload":{"objectStorage":`+lake+`}}`)
	note("UpdateObjectStorage", `{"payload":{"objectStorage":`+lake+`}}`)
	note("DeleteObjectStorage", `{"payload":{"id":"o-1"}}`)
	note("TestObjectStorage", `{"payload":{"ok":false,"field":"bucket","message":"bucket not found"}}`)
	note("Objects", `{"node":{"objects":{"objects":[{"name":"deep","path":"deep","directory":true},{"name":"a","path":"a","size":2048}],"endCursor":null}}}`)
	task := func(status string) string {
		return `{"id":"t-1","title":"Import lake to data","status":"` + status + `","message":"1 of 3 files could not be imported"`
	}
	note("ImportFolder", `{"payload":{"task":`+task("running")+`}}}`)
	note("ExportFolder", `{"payload":{"task":`+task("running")+`}}}`)
	note("TransferTask", `{"node":`+task("failed")+`,"endedAt":"2026-03-04T11:00:00Z",
		"objectTransfer":{"files":3,"filesTotal":3,"bytes":2048,"bytesTotal":2048,"left":1,"failed":1,"failures":[{"path":"../x","error":"the key has a part .."}]}}}`)
	for _, c := range []struct {
		args      string
		input     string
		code      int
		op        string
		wantInput string // variables that the server gets
		out       string // output for people
	}{
		{"objectstorage ls", "", 0, "", "", "domain default"},
		{"objectstorage show lake", "", 0, "", "", "https://s3.example.org"},
		{"objectstorage add lake --bucket lake", "", cli.ExitUsage, "CreateObjectStorage", "", "--endpoint"},
		{"objectstorage add lake --bucket lake --endpoint https://s3.example.org --access-key AKIA --secret-stdin --for-domain", "s3cret\n", 0, "CreateObjectStorage", `"secret":"s3cret"`, "bucket: bucket not found"},
		{"objectstorage set lake", "", cli.ExitUsage, "UpdateObjectStorage", "", "nothing to change"},
		{"objectstorage set lake --region eu-1", "", 0, "UpdateObjectStorage", `"region":"eu-1"`, "lake"},
		{"objectstorage set lake --endpoint https://other.example.org", "", cli.ExitUsage, "UpdateObjectStorage", "", "--secret-stdin"},
		{"objectstorage test lake", "", cli.ExitConflict, "TestObjectStorage", "o-1", "bucket not found"},
		{"objectstorage browse lake:x/y/", "", 0, "Objects", `"path":"x/y"`, "deep/"},
		{"objectstorage rm lake", "", 0, "DeleteObjectStorage", "o-1", ""},
		{"folder import data:in/here lake:sets/2026 --detach", "", 0, "ImportFolder", `"path":"sets/2026"`, "t-1"},
		{"folder import data lake --existing fail", "", cli.ExitConflict, "ImportFolder", `"existing":"FAIL"`, "the key has a part .."},
		{"folder export data:out lake:back", "", cli.ExitConflict, "ExportFolder", `"directory":"back"`, "; 1 were there already, 1 failed"},
	} {
		clear(said)
		r := f.RunWith(map[string]string{"BERTH_TOKEN": "secret", "BERTH_URL": f.URL}, c.input, strings.Fields(c.args)...)
		if r.Code != c.code || !strings.Contains(said[c.op], c.wantInput) || c.wantInput == "" && said[c.op] != "" || !strings.Contains(r.Out+r.Errors, c.out) {
			t.Errorf("%s: %+v, said %s", c.args, r, said[c.op])
		}
		if strings.Contains(r.Out+r.Errors, "s3cret") {
			t.Errorf("%s shows the secret", c.args)
		}
	}
}
