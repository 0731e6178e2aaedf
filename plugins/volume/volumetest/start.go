package volumetest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/plugins/volume"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

var startChecks = []Check{
	{"cookie", "started by hand, the program explains itself and ends with an error", cookie},
	{"version", "a host that speaks only another contract is refused, not crashed", version},
	{"negotiation", "of several versions that a host offers the common one is taken", negotiation},
	{"stdout", "nothing but the handshake line goes to standard output", stdout},
	{"tls", "it serves with mutual TLS, or plainly says that it cannot", mutualTLS},
	{"describe", "it describes itself, twice the same, without a volume", describe},
	{"schema", "options_schema is an object's, allows no other options, and explains each", schema},
}

const startTime = 30 * time.Second

func cookie(ctx context.Context, b *bench) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.plugin.Path)
	cmd.Env, cmd.Dir = append([]string{"PATH=" + os.Getenv("PATH")}, b.plugin.Env...), b.dir
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
	_, err := b.negotiate(999)
	if err == nil {
		return errors.New("version 999 was accepted")
	}
	if !strings.Contains(strings.ToLower(err.Error()), "version") {
		return fmt.Errorf("the plugin gave no version to refuse: %w", err)
	}
	return nil
}

func negotiation(_ context.Context, b *bench) error {
	got, err := b.negotiate(volume.Version, 999)
	if err == nil && got != volume.Version {
		err = fmt.Errorf("it took version %d", got)
	}
	return err
}

// negotiate starts the plugin as a host that speaks these versions.
func (b *bench) negotiate(versions ...int) (int, error) {
	cmd := exec.Command(b.plugin.Path)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + b.dir}, b.plugin.Env...)
	offer := map[int]plugin.PluginSet{}
	for _, v := range versions {
		offer[v] = plugin.PluginSet{}
	}
	c := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: volume.CookieKey, MagicCookieValue: volume.CookieValue},
		VersionedPlugins: offer,
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		StartTimeout:     startTime,
		SkipHostEnv:      true,
		Cmd:              cmd,
		Logger:           hclog.NewNullLogger(),
	})
	defer c.Kill()
	_, err := c.Start()
	return c.NegotiatedVersion(), err
}

// stdout starts the program without go-plugin's help to see the raw output.
func stdout(ctx context.Context, b *bench) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.plugin.Path)
	cmd.Env = slices.Concat([]string{
		"PATH=" + os.Getenv("PATH"), "TMPDIR=" + b.dir,
		volume.CookieKey + "=" + volume.CookieValue, "PLUGIN_PROTOCOL_VERSIONS=1",
	}, b.plugin.Env)
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
	if p := strings.Split(line, "|"); len(p) < 5 || p[0] != "1" || p[1] != "1" || p[2] != "unix" || strings.TrimSpace(p[4]) != "grpc" {
		return fmt.Errorf("handshake line is %q", line)
	}
	time.AfterFunc(300*time.Millisecond, func() { _ = cmd.Process.Kill() })
	if more, err := io.ReadAll(out); err != nil || len(more) > 0 {
		return fmt.Errorf("more on standard output: %.200q (%v)", more, err)
	}
	return nil
}

func mutualTLS(ctx context.Context, b *bench) error {
	o := b.options()
	o.Plain = false
	c, err := volume.Launch(ctx, o)
	if err != nil {
		return skip("only without TLS, which the operator says with plain: " + err.Error())
	}
	b.clients = append(b.clients, c)
	return c.Ping(ctx)
}

func describe(ctx context.Context, b *bench) error {
	c, err := b.launch(ctx) // checks the description
	if err != nil {
		return err
	}
	again, err := c.Describe(ctx, &pb.DescribeRequest{})
	if err != nil {
		return err
	}
	if !proto.Equal(again, c.Description) {
		return fmt.Errorf("described as %v and then as %v", c.Description, again)
	}
	return nil
}

// optionsSchema is what the suite understands of a schema.
type optionsSchema struct {
	Type       string              `json:"type"`
	Additional *bool               `json:"additionalProperties"`
	Properties map[string]property `json:"properties"`
	Required   []string            `json:"required"`
}

type property struct {
	Type        string   `json:"type"`
	Description string   `json:"description"`
	Enum        []any    `json:"enum"`
	Minimum     *float64 `json:"minimum"`
	Maximum     *float64 `json:"maximum"`
}

// readSchema reads the plugin's; skip when it takes no options.
func readSchema(c *volume.Client) (*optionsSchema, error) {
	text := c.Description.GetOptionsSchema()
	s := &optionsSchema{}
	if text == "" {
		return nil, skip("it takes no options")
	}
	if err := json.Unmarshal([]byte(text), s); err != nil {
		return nil, err
	}
	if len(s.Properties) == 0 {
		return s, skip("it takes no options")
	}
	return s, nil
}

func schema(ctx context.Context, b *bench) error {
	c, err := b.launch(ctx)
	if err != nil {
		return err
	}
	s, err := readSchema(c)
	if err != nil {
		return err
	}
	if s.Type != "object" || s.Additional == nil || *s.Additional {
		return errors.New(`want "type": "object" and "additionalProperties": false`)
	}
	for name, p := range s.Properties {
		if p.Description == "" || !slices.Contains([]string{"string", "integer", "number", "boolean", "array", "object"}, p.Type) {
			return fmt.Errorf("option %s: the type %q, the text %q", name, p.Type, p.Description)
		}
		for _, word := range []string{"password", "secret", "token", "private_key"} {
			if strings.HasSuffix(name, word) && !slices.Contains(c.Description.GetSecrets(), name) {
				return fmt.Errorf("option %s is a secret: want its file's name in %s_file, or the option among Describe's secrets", name, name)
			}
		}
	}
	for _, name := range slices.Concat(s.Required, c.Description.GetSecrets()) {
		if _, ok := s.Properties[name]; !ok {
			return fmt.Errorf("%s is named but is no option", name)
		}
	}
	return nil
}
