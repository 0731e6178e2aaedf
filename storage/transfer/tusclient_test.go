package transfer_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/berthhq/berth/storage/storagetest"
)

// The test runs the tus client of the page, from its npm packages.
func TestUnchangedTusClient(t *testing.T) {
	module, err := filepath.Abs("../../web/node_modules/tus-js-client/lib.esm/node/index.js")
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
	h := storagetest.New(t)
	const whole, cut = 1_000_001, 3_000_000
	out, err := exec.CommandContext(h.Ctx(), node, "testdata/tus.mjs", module, h.HTTP.URL+"/storage/uploads",
		h.Ticket("upload", "whole", whole), "1000001",
		h.Ticket("upload", "in/chunks", cut), "3000000",
		h.Ticket("upload", "empty", 0), "0").CombinedOutput()
	if err != nil || !bytes.HasSuffix(out, []byte("done\n")) {
		t.Fatalf("client: %v\n%s\n%s", err, out, h.Logs)
	}
	h.WantFile("whole", bytes.Repeat([]byte("x"), whole))
	h.WantFile("in/chunks", bytes.Repeat([]byte("x"), cut))
	h.WantFile("empty", nil)
}
