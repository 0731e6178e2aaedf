package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/berthhq/berth/agent"
)

// agentVariable is set in a child of the test binary that must act as an agent. Its value is the
// path of the agent's configuration.
const agentVariable = "BERTH_TEST_AGENT"

// agentProcess serves on a unix socket until it is killed.
func agentProcess(path string) int {
	text, err := os.ReadFile(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var cfg agent.Config
	if err := json.Unmarshal(text, &cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	a, err := agent.New(cfg)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go func() {
		<-a.Ready()
		socket := filepath.Join(cfg.Dir, "test.sock")
		_ = os.Remove(socket)
		l, err := net.Listen("unix", socket)
		if err == nil {
			fmt.Println("ready")
			err = a.GRPCServer().Serve(l)
		}
		fmt.Fprintln(os.Stderr, err)
	}()
	if err := a.Run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 1
}

// spawn starts the agent in a separate process and returns a function that sends SIGKILL.
func (n *node) spawn(t *testing.T) (kill func()) {
	t.Helper()
	cfg := n.cfg
	cfg.Logger = nil
	text, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(n.dir, "test-config.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), agentVariable+"="+path)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan error, 1)
	go func() {
		_, err := out.Read(make([]byte, 16))
		ready <- err
	}()
	select {
	case err := <-ready:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(timeout):
		t.Fatal("agent process is not ready")
	}
	disconnect := n.connect(t, filepath.Join(n.dir, "test.sock"))
	killed := false
	kill = func() {
		if !killed {
			killed = true
			disconnect()
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	t.Cleanup(kill)
	return kill
}
