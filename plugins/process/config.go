package process

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

// maxMessage limits messages in both directions. It is well above the largest message that a
// contract allows.
const maxMessage = 4 << 20

// Config prepares a process that ends no later than the context life.
func Config(life context.Context, c Contract, o Options) (*plugin.ClientConfig, error) {
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return nil, err
	}
	cfg := &plugin.ClientConfig{
		HandshakeConfig:  c.Handshake(),
		VersionedPlugins: c.sets(nil),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		AutoMTLS:         !o.Plain,
		StartTimeout:     o.StartTimeout,
		Logger:           bridge(o.Logger),
		SkipHostEnv:      true,
		Cmd:              exec.CommandContext(life, path),
		GRPCDialOptions: []grpc.DialOption{
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
			grpc.WithChainUnaryInterceptor(c.deadline),
		},
	}
	for _, k := range []string{"PATH", "LANG", "TMPDIR"} {
		if v, ok := os.LookupEnv(k); ok {
			cfg.Cmd.Env = append(cfg.Cmd.Env, k+"="+v)
		}
	}
	cfg.Cmd.Env = append(cfg.Cmd.Env, o.Env...)
	// A separate process group keeps a terminal's Ctrl-C from the plugin, and allows the host to
	// kill the plugin's children with it.
	cfg.Cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cfg.Cmd.Cancel = func() error { return syscall.Kill(-cfg.Cmd.Process.Pid, syscall.SIGKILL) }
	if o.SHA256 != "" {
		sum, err := hex.DecodeString(o.SHA256)
		if err != nil || len(sum) != sha256.Size {
			return nil, fmt.Errorf("checksum %q is not a SHA-256", o.SHA256)
		}
		cfg.SecureConfig = &plugin.SecureConfig{Checksum: sum, Hash: sha256.New()}
	}
	return cfg, nil
}
