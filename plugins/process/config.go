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

// maxMessage is room for all that a contract allows, described at length, and far
// from what would hurt.
const maxMessage = 4 << 20

// Config prepares the start of a process that ends at the latest with life.
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
