package acceleratortest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

var startChecks = []Check{
	{"cookie", "started by hand, the program explains itself and ends with an error", cookie},
	{"version", "a host that speaks only another contract is refused, not crashed", version},
	{"describe", "the description keeps the rules and is the same every time", describe},
	{"plain", "the handshake also works without TLS", plain},
	{"unconfigured", "calls before Configure answer FAILED_PRECONDITION", unconfigured},
	{"config", "bad settings are refused and change nothing", badConfig},
	{"dry-run", "a dry run writes nothing and changes nothing", dryRun},
	{"preflight", "Preflight answers with named checks", preflight},
}

func cookie(ctx context.Context, b *bench) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.plugin.Path)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.Dir = b.dir
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

func version(_ context.Context, b *bench) error {
	cmd := exec.Command(b.plugin.Path)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + b.dir}, b.plugin.Env...)
	c := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: accelerator.CookieKey, MagicCookieValue: accelerator.CookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{999: {}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		StartTimeout:     10 * time.Second,
		SkipHostEnv:      true,
		Cmd:              cmd,
		Logger:           hclog.NewNullLogger(),
	})
	defer c.Kill()
	_, err := c.Start()
	if err == nil {
		return errors.New("version 999 was accepted")
	}
	if !strings.Contains(strings.ToLower(err.Error()), "version") {
		return fmt.Errorf("the plugin gave no version to refuse: %w", err)
	}
	return nil
}

func describe(ctx context.Context, b *bench) error {
	c, err := b.launch(ctx) // checks the description
	if err != nil {
		return err
	}
	again, err := c.Describe(ctx, &pb.DescribeRequest{AgentVersion: "another", NodeName: "another", Incarnation: "2"})
	if err != nil {
		return err
	}
	if !proto.Equal(again, c.Description) {
		return errors.New("a second Describe differs from the first")
	}
	if s := again.GetConfigSchema(); len(s) > 0 {
		var v map[string]any
		if err := json.Unmarshal(s, &v); err != nil {
			return fmt.Errorf("config_schema is not a JSON object: %w", err)
		}
	}
	return nil
}

func plain(ctx context.Context, b *bench) error {
	o := b.options()
	o.Plain = true
	c, err := accelerator.Launch(ctx, o)
	if err != nil {
		return err
	}
	return c.Close()
}

func unconfigured(ctx context.Context, b *bench) error {
	c, err := b.launch(ctx)
	if err != nil {
		return err
	}
	a := &pb.Allocation{Slot: c.Description.GetSlots()[0].GetName(), DeviceId: "x", Amount: "1"}
	_, err = c.Prepare(ctx, prepare("early", b.dir, a))
	if err := want("Prepare", err, codes.FailedPrecondition); err != nil {
		return err
	}
	w, err := c.WatchDevices(ctx, &pb.WatchDevicesRequest{})
	if err != nil {
		return err
	}
	_, err = w.Recv()
	return want("WatchDevices", err, codes.FailedPrecondition)
}

func badConfig(ctx context.Context, b *bench) error {
	c, before, err := b.ready(ctx)
	if err != nil {
		return err
	}
	if len(c.Description.GetConfigSchema()) == 0 {
		return skip("the plugin has no settings")
	}
	for _, bad := range []string{`{`, `[]`, `"x"`, `{"no such setting": 1}`, `{} {}`, "\xff\xfe"} {
		req := b.request()
		req.ConfigJson = []byte(bad)
		_, err := c.Configure(ctx, req)
		if err := want(fmt.Sprintf("Configure with %q", bad), err, codes.InvalidArgument); err != nil {
			return err
		}
	}
	after, err := snapshot(ctx, c)
	if err != nil {
		return err
	}
	return equal("refused settings changed the snapshot", before, after)
}

func dryRun(ctx context.Context, b *bench) error {
	c, before, err := b.ready(ctx)
	if err != nil {
		return err
	}
	was, err := files(b.state())
	if err != nil {
		return err
	}
	req := b.request()
	req.DryRun = true
	for _, d := range before.GetDevices() {
		req.DeviceMask = append(req.DeviceMask, d.GetId())
	}
	if _, err := c.Configure(ctx, req); err != nil {
		return err
	}
	is, err := files(b.state())
	if err != nil {
		return err
	}
	if was != is {
		return fmt.Errorf("state directory changed from %q to %q", was, is)
	}
	after, err := snapshot(ctx, c)
	if err != nil {
		return err
	}
	return equal("the dry run changed the snapshot", before, after)
}

// files lists a tree with sizes.
func files(dir string) (string, error) {
	var all strings.Builder
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			fmt.Fprintln(&all, p, info.Mode(), info.Size())
		}
		return err
	})
	return all.String(), err
}

func preflight(ctx context.Context, b *bench) error {
	c, _, err := b.ready(ctx)
	if err != nil {
		return err
	}
	p, err := c.Preflight(ctx, &pb.PreflightRequest{})
	if err != nil {
		return err
	}
	if len(p.GetChecks()) == 0 {
		return errors.New("no checks")
	}
	for _, k := range p.GetChecks() {
		if k.GetName() == "" || !k.GetOk() && k.GetDetail() == "" {
			return fmt.Errorf("check %q has no name, or failed without detail", k.GetName())
		}
	}
	return nil
}

// equal compares snapshots without their revision.
func equal(what string, x, y *pb.DeviceSnapshot) error {
	x, y = proto.Clone(x).(*pb.DeviceSnapshot), proto.Clone(y).(*pb.DeviceSnapshot)
	x.Revision, y.Revision = 0, 0
	if !proto.Equal(x, y) {
		return fmt.Errorf("%s:\n%v\n%v", what, x, y)
	}
	return nil
}
