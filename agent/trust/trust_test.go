package trust

import (
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	srv := httptest.NewTLSServer(nil)
	defer srv.Close()
	certificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}))
	for name, c := range map[string]struct{ text, want string }{
		"empty":       {"", "no PEM certificate"},
		"key":         {"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", `a block of type "PRIVATE KEY"`},
		"broken":      {"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "certificate 1"},
		"certificate": {certificate, ""},
	} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Check(file)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if Check(filepath.Join(dir, "absent")) == nil {
		t.Error("a file that does not exist is accepted")
	}
}

func TestAdd(t *testing.T) {
	t.Parallel()
	spec := &specs.Spec{Process: &specs.Process{Env: []string{"PIP_CERT=/own"}}}
	Add(spec, "")
	if len(spec.Mounts) != 0 || len(spec.Process.Env) != 1 {
		t.Errorf("without a file: %+v", spec)
	}
	Add(spec, "/host/ca.crt")
	if len(spec.Mounts) != 1 || spec.Mounts[0].Source != "/host/ca.crt" || !slices.Contains(spec.Mounts[0].Options, "ro") {
		t.Errorf("mounts: %+v", spec.Mounts)
	}
	env := spec.Process.Env
	if !slices.Contains(env, "PIP_CERT=/own") || slices.Contains(env, "PIP_CERT="+Path) || !slices.Contains(env, "SSL_CERT_FILE="+Path) {
		t.Errorf("environment: %q", env)
	}
}
