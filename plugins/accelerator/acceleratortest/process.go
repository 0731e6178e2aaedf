package acceleratortest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

var processChecks = []Check{
	{"sigterm", "SIGTERM ends the process within 5 s", sigterm},
	{"stdout", "nothing but the handshake line goes to standard output", stdout},
	{"frugal", "it starts within 5 s and stays below 256 MiB", frugal},
}

const (
	maxStart = patience
	maxRSS   = 256 << 20
)

func sigterm(ctx context.Context, b *bench) error {
	c, _, err := b.ready(ctx)
	if err != nil {
		return err
	}
	w, err := c.WatchDevices(ctx, &pb.WatchDevicesRequest{}) // an open stream holds nothing up
	if err != nil {
		return err
	}
	if _, err := w.Recv(); err != nil {
		return err
	}
	began := time.Now()
	if err := syscall.Kill(c.Pid(), syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-c.Done():
		return note(fmt.Sprintf("after %.2f s", time.Since(began).Seconds()))
	case <-time.After(5 * time.Second):
		return fmt.Errorf("still running after %s", patience)
	}
}

// stdout starts the program without go-plugin's help to see the raw output.
func stdout(ctx context.Context, b *bench) error {
	line, rest, err := b.handshake(ctx)
	if err != nil {
		return err
	}
	if p := strings.Split(line, "|"); len(p) < 5 || p[0] != "1" || p[1] != "1" || p[2] != "unix" || p[4] != "grpc" {
		return fmt.Errorf("handshake line is %q", line)
	}
	if rest != "" {
		return fmt.Errorf("more on standard output: %.200q", rest)
	}
	return nil
}

// handshake returns the first line that the program prints, and what it prints
// in half a second after that.
func (b *bench) handshake(ctx context.Context, env ...string) (line, rest string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.plugin.Path)
	cmd.Env = slices.Concat([]string{
		"PATH=" + os.Getenv("PATH"), "TMPDIR=" + b.dir,
		accelerator.CookieKey + "=" + accelerator.CookieValue, "PLUGIN_PROTOCOL_VERSIONS=1",
	}, env, b.plugin.Env)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return "", "", err
	}
	if err := cmd.Start(); err != nil {
		return "", "", err
	}
	defer func() { _ = cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()
	out := bufio.NewReader(pipe)
	if line, err = out.ReadString('\n'); err != nil {
		return "", "", fmt.Errorf("no handshake line: %w", err)
	}
	time.AfterFunc(500*time.Millisecond, func() { _ = cmd.Process.Kill() })
	more, err := io.ReadAll(out)
	return strings.TrimSpace(line), string(more), err
}

func frugal(ctx context.Context, b *bench) error {
	began := time.Now()
	c, _, err := b.ready(ctx)
	if err != nil {
		return err
	}
	took := time.Since(began)
	if took > maxStart {
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
	n := resident * os.Getpagesize()
	if n > maxRSS {
		return fmt.Errorf("%d MiB resident", n>>20)
	}
	return note(fmt.Sprintf("ready after %.2f s with %d MiB", took.Seconds(), n>>20))
}
