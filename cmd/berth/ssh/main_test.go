package ssh

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

func commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{Command(a), ConfigCommand(a)}
}

// asBerth makes the test binary run as berth, because the command ssh replaces its process.
const asBerth = "BERTH_TEST_AS_BERTH"

func TestMain(m *testing.M) {
	if os.Getenv(asBerth) != "" {
		os.Unsetenv(asBerth)
		a := cli.New(os.Stdin, os.Stdout, os.Stderr, os.Getenv)
		os.Exit(a.Main(context.Background(), os.Args[1:], commands(a)...))
	}
	clitest.Main(m)
}

// berth returns a process of berth with these arguments and this HOME.
func berth(t *testing.T, f *clitest.Server, home string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), asBerth+"=1", "BERTH_URL="+f.URL, "BERTH_TOKEN=secret", "BERTH_CONFIG=", "XDG_CONFIG_HOME=",
		"HOME="+home, "SSH_AUTH_SOCK=", "DISPLAY=")
	return cmd
}

// result runs a process to its end.
func result(t *testing.T, cmd *exec.Cmd, stdin string) clitest.Result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return clitest.Result{Code: cmd.ProcessState.ExitCode(), Out: out.String(), Errors: errs.String()}
}

const (
	idTrain = "01908a5e-0000-7000-8000-000000000001"
	idOther = "01908a5e-0000-7000-8000-000000000002"
	kernels = `"kernels":[{"id":"k0","hostname":"main","status":"RUNNING"},{"id":"k1","hostname":"sub1","status":"RUNNING"}]`
)

// newServer returns a server with one running session of two containers and no SSH gateway.
func newServer(t *testing.T) *clitest.Server {
	f := clitest.New(t, commands)
	have(f, `{"id":"`+idTrain+`","name":"train","status":"RUNNING",`+kernels+`}`)
	f.Data("Viewer", `{"viewer":{"user":{"id":"u1"}}}`)
	f.Data("SSHEndpoint", `{"server":{"ssh":null}}`)
	f.Data("SSHKeys", `{"sshKeys":{"edges":[],"pageInfo":{}}}`)
	return f
}

// have sets the sessions of a server.
func have(f *clitest.Server, sessions ...string) {
	page := `{"sessions":` + clitest.Edges(sessions...) + `}`
	f.Data("Sessions", page)
	f.Data("SessionContainers", page)
}
