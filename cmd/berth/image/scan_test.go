package image

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

const (
	scanTask = `{"id":"01900000-0000-7000-8000-0000000000a1","kind":"image.scan","title":"Scan registry hub","status":"DONE","done":3,"total":3,"message":"new: 2, failed: 1","attempt":1,"subjectID":null,"createdAt":"2026-03-04T11:59:00Z","startedAt":null,"endedAt":null}`
	oneImage = `{"id":"01900000-0000-7000-8000-0000000000b1","reference":"hub.example.org/tool:1","name":"tool:1","architecture":"amd64","digest":"sha256:aa","sizeBytes":1024,"labels":{},"minimumSlots":{},"status":"ALIVE","createdAt":"2026-03-04T11:59:00Z","registry":null,"moved":true,"tagDigest":"sha256:bb","tagPolicy":"PINNED","deprecated":""}`
)

func TestScanWaitsAndReports(t *testing.T) {
	f := newServer(t)
	said := clitest.Record(f, map[string]string{
		"Registries":   oneRegistry,
		"ScanRegistry": `{"scanRegistry":{"task":` + scanTask + `}}`,
		"ScanResults":  `{"scanResults":{"edges":[{"node":{"id":"01900000-0000-7000-8000-0000000000c1","name":"bad:1","outcome":"FAILED","digest":"","message":"its manifest is not JSON","scannedAt":"2026-03-04T11:59:00Z"}}],"pageInfo":{}}}`,
		"TestRegistry": `{"testRegistry":{"checks":[{"step":"REACHABLE","works":true,"text":"hub.example.org answers."},{"step":"TLS","works":false,"text":"The certificate is for another host."}]}}`,
	})
	if r := f.Run("image", "scan", "hub.example.org"); r.Code != cli.ExitConflict || !strings.Contains(r.Out, "its manifest is not JSON") {
		t.Errorf("scan: %+v", r)
	}
	if !strings.Contains(said["ScanResults"], `"outcomeIn":["FAILED"]`) {
		t.Errorf("asked for %s", said["ScanResults"])
	}
	if r := f.Run("image", "scan", "--detach"); r.Code != 0 || !strings.Contains(r.Out, "Scan registry hub") {
		t.Errorf("detached: %+v", r)
	}
	if r := f.Run("image", "report", "hub.example.org", "--outcome", "failed,moved"); r.Code != 0 || !strings.Contains(said["ScanResults"], `["FAILED","MOVED"]`) {
		t.Errorf("report: %+v, asked for %s", r, said["ScanResults"])
	}
	if r := f.Run("image", "registry", "test", "hub.example.org"); r.Code == 0 || !strings.Contains(r.Out, "another host") {
		t.Errorf("test: %+v", r)
	}
}

func TestRegistrySettings(t *testing.T) {
	f := newServer(t)
	said := clitest.Record(f, map[string]string{
		"Registries":     oneRegistry,
		"UpdateRegistry": strings.Replace(strings.TrimSuffix(strings.TrimPrefix(oneRegistry, `{"registries":{"edges":[{"node":`), `}],"pageInfo":{}}}`), `{"id"`, `{"updateRegistry":{"registry":{"id"`, 1) + "}}",
	})
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, []byte("PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := f.Run("image", "registry", "update", "hub.example.org", "--proxy", "http://proxy:3128", "--ca-file", ca, "--repositories", "team/*,tool", "--scan-every", "6h", "--tag-policy", "pinned", "--projects", "all")
	for _, part := range []string{`"proxy":"http://proxy:3128"`, `"certificates":"PEM"`, `"repositories":["team/*","tool"]`, `"scanEvery":21600`, `"tagPolicy":"PINNED"`, `"projects":[]`} {
		if r.Code != 0 || !strings.Contains(said["UpdateRegistry"], part) {
			t.Errorf("%+v said %s, want %s", r, said["UpdateRegistry"], part)
		}
	}
}

func TestVersionsOfAnImage(t *testing.T) {
	f := newServer(t)
	said := clitest.Record(f, map[string]string{
		"Images": `{"images":{"edges":[{"node":` + oneImage + `}],"pageInfo":{}}}`, "ImageByName": `{"image":` + oneImage + `}`,
		"RollbackImage": `{"rollbackImage":{"image":` + oneImage + `}}`, "UpdateImage": `{"updateImage":{"image":` + oneImage + `}}`,
		"ImageHistory": `{"image":` + strings.TrimSuffix(oneImage, "}") + `,"versions":[{"id":"v2","digest":"sha256:bb","sizeBytes":2048,"createdAt":"2026-03-04T11:59:00Z"},{"id":"v1","digest":"sha256:aa","sizeBytes":1024,"createdAt":"2026-03-04T11:00:00Z"}],
			"change":{"from":"sha256:aa","to":"sha256:bb","layersKept":1,"bytesKept":1024,"layersAdded":1,"bytesAdded":1024,"layersRemoved":0,"labels":[{"name":"v","before":"1","after":null}],"environment":[]}}}`,
	})
	if r := f.Run("image", "ls"); r.Code != 0 || !strings.Contains(r.Out, "tag moved") {
		t.Errorf("ls: %+v", r)
	}
	if r := f.Run("image", "history", "tool:1"); r.Code != 0 || !strings.Contains(r.Out, "sha256:bb") || !strings.Contains(r.Out, "1 → none") {
		t.Errorf("history: %+v", r)
	}
	if r := f.Run("image", "rollback", "tool:1", "sha256:aa"); r.Code != 0 || !strings.Contains(said["RollbackImage"], `"digest":"sha256:aa"`) {
		t.Errorf("rollback: %+v, %s", r, said["RollbackImage"])
	}
	if r := f.Run("image", "update", "tool:1", "--deprecated", "Use tool:2.", "--tag-policy", "follow"); r.Code != 0 || !strings.Contains(said["UpdateImage"], `"tagPolicy":"FOLLOW","deprecated":"Use tool:2."`) {
		t.Errorf("update: %+v, %s", r, said["UpdateImage"])
	}
}

func TestSweepWebhookAndAttachments(t *testing.T) {
	f := newServer(t)
	const swept = `{"registries":{"edges":[{"node":{"id":"01900000-0000-7000-8000-0000000000f1","name":"local","host":"127.0.0.1:5000","sweepable":true,"lastSweep":{"at":"2026-03-04T12:00:00Z","dryRun":true,"blobs":3,"manifests":1,"freedBytes":1048576,"storedBytes":5242880}}}],"pageInfo":{}}}`
	const done = `{"id":"01900000-0000-7000-8000-0000000000a1","kind":"image.sweep","title":"Sweep","status":"DONE","createdAt":"2026-03-04T11:59:00Z","endedAt":"2026-03-04T12:00:00Z"}`
	said := clitest.Record(f, map[string]string{
		"Registries":         swept,
		"RegistryByName":     `{"registry":{"id":"01900000-0000-7000-8000-0000000000f1","name":"local","host":"127.0.0.1:5000","sweepable":true,"lastSweep":{"at":"2026-03-04T12:00:00Z","dryRun":true,"blobs":3,"manifests":1,"freedBytes":1048576,"storedBytes":5242880}}}`,
		"SweepRegistry":      `{"sweepRegistry":{"task":` + done + `}}`,
		"Task":               `{"task":` + done + `}`,
		"UpdateRegistry":     `{"updateRegistry":{"registry":{"id":"01900000-0000-7000-8000-0000000000f1","name":"local","host":"127.0.0.1:5000"}}}`,
		"SetRegistryWebhook": `{"setRegistryWebhook":{"path":"/webhooks/registry/x","secret":"SECRET"}}`,
		"ImageAttachments":   `{"imageAttachments":[{"kind":"SBOM","format":"SPDX 2.3","digest":"sha256:1","sizeBytes":10,"packageCount":2,"packages":[{"name":"openssl","version":"3.0","license":"Apache-2.0"}],"severities":[]},{"kind":"VULNERABILITIES","format":"Trivy","sizeBytes":20,"packages":[],"severities":[{"severity":"HIGH","count":2}]}]}`,
		"ImageByName":        `{"image":` + oneImage + `}`,
	})
	for _, c := range []struct{ args, op, input, shows string }{
		{"image registry sweep --dry-run", "SweepRegistry", `{"id":"01900000-0000-7000-8000-0000000000f1","dryRun":true}`, "Would free"},
		{"image registry webhook local", "SetRegistryWebhook", `{"id":"01900000-0000-7000-8000-0000000000f1","enabled":true}`, "SECRET"},
		{"image registry webhook local --off", "SetRegistryWebhook", `{"id":"01900000-0000-7000-8000-0000000000f1","enabled":false}`, ""},
		{"image registry update local --retention users/=30:5,=7 --sweep-every 12h --signature-keys=", "UpdateRegistry", `{"id":"01900000-0000-7000-8000-0000000000f1","signatureKeys":"","sweepEvery":43200,"retention":[{"prefix":"users/","untaggedDays":30,"versions":5},{"prefix":"","untaggedDays":7}]}`, "local"},
		{"image registry update local --lazy-start", "UpdateRegistry", `{"id":"01900000-0000-7000-8000-0000000000f1","lazyStart":true}`, "local"},
		{"image registry update local --lazy-start=false", "UpdateRegistry", `{"id":"01900000-0000-7000-8000-0000000000f1","lazyStart":false}`, "local"},
		{"image attachments tool:1", "ImageAttachments", "", "high: 2"},
		{"image attachments tool:1 --search openssl", "ImageAttachments", "", "Apache-2.0"},
	} {
		r := f.Run(strings.Fields(c.args)...)
		if r.Code != 0 || c.input != "" && said[c.op] != `{"input":`+c.input+`}` || !strings.Contains(r.Out, c.shows) {
			t.Errorf("%s: %+v\nsaid %s", c.args, r, said[c.op])
		}
	}
	if r := f.Run("image", "registry", "update", "local", "--retention", "users"); r.Code != cli.ExitInvalid || !strings.Contains(r.Errors, "PREFIX=DAYS") {
		t.Errorf("a bad rule: %+v", r)
	}
}
