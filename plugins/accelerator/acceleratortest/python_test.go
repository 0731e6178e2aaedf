package acceleratortest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berthhq/berth/plugins/accelerator/acceleratortest"
)

const example = "../../../examples/accelerator-python"

// python returns a Python interpreter that has gRPC; it prefers the first in PATH, then Debian's.
func python(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		path, err := exec.LookPath(name)
		if err == nil && exec.Command(path, "-c", "import grpc, google.protobuf").Run() == nil {
			return path
		}
	}
	t.Skip("no python3 with the modules grpc and google.protobuf; Debian's are python3-grpcio and python3-protobuf")
	return ""
}

// TestPythonExample builds the example as documented and runs the suite on its machine.
func TestPythonExample(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a plugin")
	}
	interpreter := python(t)
	if _, err := exec.LookPath("protoc"); err != nil {
		t.Skip("no protoc; Debian's is protobuf-compiler")
	}
	at := t.TempDir()
	out, err := exec.Command("protoc", "-I", "../acceleratorpb", "--python_out="+at, "accelerator.proto").CombinedOutput()
	if err != nil {
		t.Fatalf("protoc: %v\n%s", err, out)
	}
	for _, name := range []string{"plugin.py", "berth_accelerator.py"} {
		text, err := os.ReadFile(filepath.Join(example, name))
		if err != nil {
			t.Fatal(err)
		}
		program := strings.Replace(string(text), "#!/usr/bin/env python3", "#!"+interpreter, 1)
		if err := os.WriteFile(filepath.Join(at, name), []byte(program), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	acceleratortest.Test(t, acceleratortest.Plugin{Path: filepath.Join(at, "plugin.py"), Fixture: example})
}
