package accelerator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

const (
	startTimeout   = 15 * time.Second // a healthy Go plugin needs 0.1 s, a Python one 0.2 s
	callTimeout    = 10 * time.Second
	prepareTimeout = 60 * time.Second
	closeGrace     = 3 * time.Second // go-plugin itself waits 2 s before it kills

	// Room for MaxDevices described at length, and far from what would hurt.
	maxMessage = 4 << 20
)

// ErrChecksum is in Launch's error when the program is not the one expected.
var ErrChecksum = plugin.ErrChecksumsDoNotMatch

// Options say which program to start and how.
type Options struct {
	Path string
	// SHA256 of the program in hexadecimal; empty = not checked.
	SHA256 string
	// Env is added to PATH, LANG and TMPDIR; nothing else is inherited.
	Env []string
	// Plain turns mutual TLS off for plugins that cannot do go-plugin's
	// variant (Python); the socket's directory is then the only guard.
	Plain bool
	// SocketDir holds the directory with the socket; empty = $TMPDIR. Socket
	// paths are limited to 107 bytes.
	SocketDir string
	// StartTimeout bounds the time to the first answer; 0 = 15 s.
	StartTimeout time.Duration
	Logger       *slog.Logger // nil = discard
	// Who asks; sent with Describe.
	AgentVersion, NodeName, Incarnation string
}

// Client is a running plugin. Its unary calls carry the contract's deadlines
// unless the caller's context has a nearer one.
type Client struct {
	acceleratorpb.AcceleratorClient
	// Description is what the plugin answered to the first call, checked.
	Description *acceleratorpb.DescribeResponse

	proc   *process
	done   <-chan struct{}
	close  sync.Once
	closed error
}

// Launch starts a plugin, makes the first call and checks the answer. The
// process dies with the host, however that ends. The caller closes the client.
func Launch(ctx context.Context, o Options) (*Client, error) {
	if o.StartTimeout <= 0 {
		o.StartTimeout = startTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, o.StartTimeout)
	defer cancel()
	proc, err := start(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("start plugin %s: %w", o.Path, err)
	}
	c, err := connect(ctx, proc, o)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("load plugin %s: %w", o.Path, err), proc.stop())
	}
	return c, nil
}

// connect makes the one real call that shows that both sides understand each
// other: with TLS on one side only, everything before it succeeds.
func connect(ctx context.Context, proc *process, o Options) (*Client, error) {
	proto, err := proc.plugin.Client()
	if err != nil {
		return nil, err
	}
	raw, err := proto.Dispense(service)
	if err != nil {
		return nil, err
	}
	l := raw.(*link)
	d, err := l.Describe(ctx, &acceleratorpb.DescribeRequest{
		AgentVersion: o.AgentVersion, NodeName: o.NodeName, Incarnation: o.Incarnation,
	})
	if err != nil {
		return nil, fmt.Errorf("describe: %w", err)
	}
	if err := ValidateDescription(d); err != nil {
		return nil, fmt.Errorf("describe: %w", err)
	}
	return &Client{AcceleratorClient: l.AcceleratorClient, Description: d, proc: proc, done: l.exited}, nil
}

// Pid is the plugin's process id.
func (c *Client) Pid() int { return c.proc.pid }

// Version is the contract version both sides agreed on.
func (c *Client) Version() int { return c.proc.plugin.NegotiatedVersion() }

// Done is closed when the process has ended, whoever ended it.
func (c *Client) Done() <-chan struct{} { return c.done }

// Ping makes a call that touches no hardware and fails when it is not answered
// in time: the way to notice a process that is alive but stuck.
func (c *Client) Ping(ctx context.Context) error {
	_, err := c.Describe(ctx, &acceleratorpb.DescribeRequest{})
	if err != nil {
		return fmt.Errorf("ping plugin %s: %w", c.Description.Key, err)
	}
	return nil
}

// Close ends the process, politely for 3 s, and waits until it is gone. It may
// be called again.
func (c *Client) Close() error {
	c.close.Do(func() { c.closed = c.proc.stop() })
	return c.closed
}

// config prepares the start of a process that ends at the latest with life.
func config(life context.Context, o Options) (*plugin.ClientConfig, error) {
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return nil, err
	}
	cfg := &plugin.ClientConfig{
		HandshakeConfig:  handshake,
		VersionedPlugins: versions(nil),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		AutoMTLS:         !o.Plain,
		StartTimeout:     o.StartTimeout,
		Logger:           bridge(o.Logger),
		SkipHostEnv:      true,
		Cmd:              exec.CommandContext(life, path),
		GRPCDialOptions: []grpc.DialOption{
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
			grpc.WithChainUnaryInterceptor(deadlines),
		},
	}
	for _, k := range []string{"PATH", "LANG", "TMPDIR"} {
		if v, ok := os.LookupEnv(k); ok {
			cfg.Cmd.Env = append(cfg.Cmd.Env, k+"="+v)
		}
	}
	cfg.Cmd.Env = append(cfg.Cmd.Env, o.Env...)
	// Its own process group: a terminal's Ctrl-C is for the host, and whatever
	// the plugin leaves behind can be ended with it.
	cfg.Cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cfg.Cmd.Cancel = func() error { return syscall.Kill(-cfg.Cmd.Process.Pid, syscall.SIGKILL) }
	if o.SHA256 != "" {
		sum, err := hex.DecodeString(o.SHA256)
		if err != nil || len(sum) != sha256.Size {
			return nil, fmt.Errorf("checksum %q is no SHA-256", o.SHA256)
		}
		cfg.SecureConfig = &plugin.SecureConfig{Checksum: sum, Hash: sha256.New()}
	}
	return cfg, nil
}

func deadlines(ctx context.Context, method string, req, resp any, cc *grpc.ClientConn, next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	d := callTimeout
	if method == acceleratorpb.Accelerator_Prepare_FullMethodName {
		d = prepareTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return next(ctx, method, req, resp, cc, opts...)
}
