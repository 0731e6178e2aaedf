package acceleratortest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/berthhq/berth/plugins/accelerator"
)

var processChecks = []Check{
	{"sigterm", "SIGTERM ends the process within 5 s", sigterm},
	{"stdout", "nothing but the handshake line goes to standard output", stdout},
	{"frugal", "it starts within 5 s and stays below 256 MiB", frugal},
}

const (
	maxStart = 5 * time.Second
	maxRSS   = 256 << 20
)

func sigterm(ctx context.Context, b *bench) error {
	c, _, err := b.ready(ctx)
	if err != nil {
		return err
	}
	if err := syscall.Kill(c.Pid(), syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-c.Done():
		return nil
	case <-time.After(5 * time.Second):
		return errors.New("still running after 5 s")
	}
}

// stdout starts the program without go-plugin's help to see the raw output.
func stdout(ctx context.Context, b *bench) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.plugin.Path)
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "TMPDIR=" + b.dir,
		accelerator.CookieKey + "=" + accelerator.CookieValue, "PLUGIN_PROTOCOL_VERSIONS=1",
	}, b.plugin.Env...)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { _ = cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()
	out := bufio.NewReader(pipe)
	line, err := out.ReadString('\n')
	if err != nil {
		return fmt.Errorf("no handshake line: %w", err)
	}
	if p := strings.Split(strings.TrimSpace(line), "|"); len(p) < 5 || p[0] != "1" || p[1] != "1" || p[2] != "unix" || p[4] != "grpc" {
		return fmt.Errorf("handshake line is %q", line)
	}
	time.AfterFunc(500*time.Millisecond, func() { _ = cmd.Process.Kill() })
	rest, err := io.ReadAll(out)
	if len(rest) > 0 {
		return fmt.Errorf("more on standard output: %.200q", rest)
	}
	return err
}

func frugal(ctx context.Context, b *bench) error {
	began := time.Now()
	c, _, err := b.ready(ctx)
	if err != nil {
		return err
	}
	if took := time.Since(began); took > maxStart {
		return fmt.Errorf("ready after %v", took)
	}
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", c.Pid()))
	if err != nil {
		return err
	}
	var size, resident int
	if _, err := fmt.Sscan(string(raw), &size, &resident); err != nil {
		return err
	}
	if n := resident * os.Getpagesize(); n > maxRSS {
		return fmt.Errorf("%d MiB resident", n>>20)
	}
	return nil
}
