package storage_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The browser's own client, from the web page's packages.
func TestUnchangedTusClient(t *testing.T) {
	module, err := filepath.Abs("../web/node_modules/tus-js-client/lib.esm/node/index.js")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(module); err != nil {
		t.Skip("the web page's packages are not installed")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node")
	}
	h := newHost(t)
	const whole, cut = 1_000_001, 3_000_000
	out, err := exec.CommandContext(h.ctx(), node, "testdata/tus.mjs", module, h.http.URL+"/storage/uploads",
		h.ticket("upload", "whole", whole), "1000001",
		h.ticket("upload", "in/chunks", cut), "3000000",
		h.ticket("upload", "empty", 0), "0").CombinedOutput()
	if err != nil || !bytes.HasSuffix(out, []byte("done\n")) {
		t.Fatalf("client: %v\n%s\n%s", err, out, h.logs)
	}
	h.wantFile("whole", bytes.Repeat([]byte("x"), whole))
	h.wantFile("in/chunks", bytes.Repeat([]byte("x"), cut))
	h.wantFile("empty", nil)
}
