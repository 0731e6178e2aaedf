package registry_test

import (
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/registry"
	"github.com/berthhq/berth/internal/registry/pushtoken"
	"github.com/berthhq/berth/internal/registry/registrytest"
	"github.com/berthhq/berth/internal/testenv"
)

// junit is the part of the suite's report that counts.
type junit struct {
	Tests    int `xml:"tests,attr"`
	Errors   int `xml:"errors,attr"`
	Failures int `xml:"failures,attr"`
	Skipped  int `xml:"skipped,attr"`
	Disabled int `xml:"disabled,attr"`
}

// The suite of the specification passes with a token for one namespace, with every optional part, and
// nothing is skipped.
func TestConformanceWithOCI(t *testing.T) {
	t.Parallel()
	bin := filepath.Join(testenv.Root(t), "bin", "tools", "oci-conformance")
	if _, err := os.Stat(bin); err != nil {
		t.Skipf("needs the suite: make bin/tools/oci-conformance (%v)", err)
	}
	_, host := registrytest.Serve(t, t.TempDir(), func(r *registry.Registry) {
		r.Require("the password of readers")
		r.AllowPush(key)
	})
	token, err := key.Sign(pushtoken.Grant{Namespace: "conformance", Delete: true, Expires: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), bin)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "OCI_REGISTRY="+host, "OCI_TLS=disabled", "OCI_RESULTS_DIR="+dir,
		"OCI_USERNAME="+pushtoken.User, "OCI_PASSWORD="+token, "OCI_REPO1=conformance/one", "OCI_REPO2=conformance/two",
		"OCI_API_BLOBS_UPLOAD_CANCEL=true", "OCI_API_BLOBS_DIGEST_HEADER=true", "OCI_API_MANIFESTS_DIGEST_HEADER=true",
		"OCI_API_MANIFESTS_TAG_PARAM=true")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("the suite failed: %v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "junit.xml"))
	if err != nil {
		t.Fatal(err)
	}
	var report junit
	if err := xml.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	if report.Tests < 900 || report.Errors+report.Failures+report.Skipped+report.Disabled > 0 {
		t.Errorf("the suite reports %+v\n%s", report, out)
	}
	t.Logf("%d checks passed", report.Tests)
}
