package volumetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/plugins/suite"
	"github.com/berthhq/berth/plugins/volume"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

var startChecks = []Check{
	{"cookie", "started by hand, the program explains itself and ends with an error", cookie},
	{"version", "a host that speaks only another contract is refused, not crashed", version},
	{"negotiation", "of several versions that a host offers the common one is taken", negotiation},
	{"stdout", "nothing but the handshake line goes to standard output", stdout},
	{"tls", "it serves with mutual TLS, as a storage proxy wants it", mutualTLS},
	{"describe", "it describes itself, twice the same, without a volume", describe},
	{"schema", "options_schema is an object's, allows no other options, and explains each", schema},
}

const startTime = 30 * time.Second

func cookie(ctx context.Context, b *bench) error { return b.program().Cookie(ctx) }

func version(_ context.Context, b *bench) error { return b.program().Version() }

func negotiation(_ context.Context, b *bench) error { return b.program().Negotiation() }

func stdout(ctx context.Context, b *bench) error { return b.program().Stdout(ctx) }

func mutualTLS(ctx context.Context, b *bench) error {
	o := b.options()
	o.Plain = false
	c, err := volume.Launch(ctx, o)
	if err != nil {
		return err
	}
	b.clients = append(b.clients, c)
	return c.Ping(ctx)
}

func describe(ctx context.Context, b *bench) error {
	c, err := b.launch(ctx) // validates the description
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

// optionsSchema is the part of JSON Schema that the suite supports.
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

// readSchema parses the plugin's schema. It skips the check if the plugin has no options.
func readSchema(c *volume.Client) (*optionsSchema, error) {
	text := c.Description.GetOptionsSchema()
	s := &optionsSchema{}
	if text == "" {
		return nil, suite.Skip("it takes no options")
	}
	if err := json.Unmarshal([]byte(text), s); err != nil {
		return nil, err
	}
	if len(s.Properties) == 0 {
		return s, suite.Skip("it takes no options")
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
