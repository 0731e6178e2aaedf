package suite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"

	"github.com/berthhq/berth/plugins/process"
)

// Program is a plugin's program that a check starts without the host's code.
type Program struct {
	Path     string
	Env      []string // added to its environment
	Dir      string   // for its socket
	Contract process.Contract
	Timeout  time.Duration // limit of its start
}

// IsProgram returns the absolute path of a program, because checks start it in another directory.
// It returns an error if the file is not executable.
func IsProgram(path string) (string, error) {
	info, err := os.Stat(path)
	if err == nil && (info.IsDir() || info.Mode()&0o111 == 0) {
		err = fmt.Errorf("%s is not a program", path)
	}
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// Cookie checks that the program prints an explanation and exits with an error if a person starts
// it.
func (p Program) Cookie(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.Path)
	cmd.Env, cmd.Dir = append([]string{"PATH=" + os.Getenv("PATH")}, p.Env...), p.Dir
	out, err := cmd.Output()
	var exit *exec.ExitError
	if ctx.Err() != nil || !errors.As(err, &exit) {
		return fmt.Errorf("without the cookie the program did not end with an error: %v", err)
	}
	if strings.Contains(string(out), "|grpc") {
		return fmt.Errorf("it offers its service to anyone: %q", out)
	}
	if len(exit.Stderr) == 0 {
		return errors.New("nothing on standard error explains why")
	}
	return nil
}

// never is a version that no plugin supports.
const never = 999

// Version checks that the program refuses a host that supports only another version, without
// crashing.
func (p Program) Version() error {
	_, err := p.negotiate(never)
	if err == nil {
		return fmt.Errorf("version %d was accepted", never)
	}
	if !strings.Contains(strings.ToLower(err.Error()), "version") {
		return fmt.Errorf("the plugin gave no version to refuse: %w", err)
	}
	return nil
}

// Negotiation checks that the common version is selected if a host offers several.
func (p Program) Negotiation() error {
	want := p.Contract.Newest()
	got, err := p.negotiate(want, never)
	if err == nil && got != want {
		err = fmt.Errorf("it took version %d", got)
	}
	return err
}

// negotiate starts the program with the environment of a host that supports these versions.
func (p Program) negotiate(versions ...int) (int, error) {
	cmd := exec.Command(p.Path)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + p.Dir}, p.Env...)
	offer := map[int]plugin.PluginSet{}
	for _, v := range versions {
		offer[v] = plugin.PluginSet{}
	}
	c := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  p.Contract.Handshake(),
		VersionedPlugins: offer,
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		StartTimeout:     p.Timeout,
		SkipHostEnv:      true,
		Cmd:              cmd,
		Logger:           hclog.NewNullLogger(),
	})
	defer c.Kill()
	_, err := c.Start()
	return c.NegotiatedVersion(), err
}

// Stdout checks that only the handshake line is printed to standard output.
func (p Program) Stdout(ctx context.Context) error {
	line, rest, err := p.Handshake(ctx)
	if err != nil {
		return err
	}
	if f := strings.Split(line, "|"); len(f) < 5 || f[0] != "1" || f[1] != "1" || f[2] != "unix" || f[4] != "grpc" {
		return fmt.Errorf("handshake line is %q", line)
	}
	if rest != "" {
		return fmt.Errorf("more on standard output: %.200q", rest)
	}
	return nil
}

// Handshake starts the program without go-plugin, to capture the raw output: the first line, and
// the output of the half second after it.
func (p Program) Handshake(ctx context.Context, env ...string) (line, rest string, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.Path)
	h := p.Contract.Handshake()
	cmd.Env = slices.Concat([]string{
		"PATH=" + os.Getenv("PATH"), "TMPDIR=" + p.Dir,
		h.MagicCookieKey + "=" + h.MagicCookieValue, fmt.Sprintf("PLUGIN_PROTOCOL_VERSIONS=%d", p.Contract.Newest()),
	}, env, p.Env)
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

// Terminates checks that SIGTERM ends a plugin's process. The contracts allow 5 s; timeout is the
// limit of the check. If successful, it returns a Note with the duration.
func Terminates(p *process.Process, timeout time.Duration) error {
	began := time.Now()
	if err := syscall.Kill(p.Pid(), syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.Done():
		return Note(fmt.Sprintf("after %.2f s", time.Since(began).Seconds()))
	case <-time.After(timeout):
		return fmt.Errorf("still running after %v", timeout)
	}
}

// maxResident is the resident memory, in MiB, that the contracts allow.
const maxResident = 256

// Frugal returns the resident memory of a plugin's process in MiB, and an error if it exceeds
// maxResident.
func Frugal(p *process.Process) (int, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.Pid()))
	if err != nil {
		return 0, err
	}
	var size, resident int
	if _, err := fmt.Sscan(string(raw), &size, &resident); err != nil {
		return 0, err
	}
	n := resident * os.Getpagesize() >> 20
	if n > maxResident {
		return n, fmt.Errorf("%d MiB resident", n)
	}
	return n, nil
}
