package volumetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/plugins/suite"
	"github.com/berthhq/berth/plugins/volume"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

var startChecks = []Check{
	{"cookie", "started by a person, the program prints an explanation and ends with an error", cookie},
	{"version", "a host that speaks only another contract is refused, not crashed", version},
	{"negotiation", "of several versions that a host offers, the common one is used", negotiation},
	{"stdout", "nothing but the handshake line goes to standard output", stdout},
	{"tls", "it serves with mutual TLS, as a storage proxy requires", mutualTLS},
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

var optionChecks = []Check{
	{"options-unknown", "an unknown option is INVALID_ARGUMENT and named", optionsUnknown},
	{"options-types", "each option with a value of another type is INVALID_ARGUMENT and named", optionsTypes},
	{"options-bounds", "each option beyond its bounds or choices is INVALID_ARGUMENT and named", optionsBounds},
	{"options-required", "each required option that is left out is INVALID_ARGUMENT and named", optionsRequired},
	{"options-garbage", "options that are not a JSON object are INVALID_ARGUMENT", optionsGarbage},
	{"options-kept", "options that are refused leave the volume open as it was", optionsKept},
}

// given returns the options that the plugin is tested with.
func (b *bench) given() (map[string]any, error) {
	out := map[string]any{}
	if strings.TrimSpace(b.plugin.Options) == "" {
		return out, nil
	}
	return out, json.Unmarshal([]byte(b.plugin.Options), &out)
}

// try opens the volume with one option changed or removed.
func (b *bench) try(ctx context.Context, c *volume.Client, name string, value any, remove bool) error {
	o, err := b.given()
	if err != nil {
		return err
	}
	o = maps.Clone(o)
	if o[name] = value; remove {
		delete(o, name)
	}
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	q := b.request()
	q.OptionsJson = string(text)
	_, err = c.OpenVolume(ctx, q)
	what := fmt.Sprintf("%s: %v", name, value)
	if remove {
		what = "without " + name
	}
	if err := want(what, err, codes.InvalidArgument); err != nil {
		return err
	}
	if text := status.Convert(err).Message(); !strings.Contains(text, name) {
		return fmt.Errorf("the message %q does not name the option %s", text, name)
	}
	return nil
}

func optionsUnknown(ctx context.Context, b *bench) error {
	c, err := b.launch(ctx)
	if err != nil {
		return err
	}
	return b.try(ctx, c, "no_such_option_x7", 1, false)
}

func optionsTypes(ctx context.Context, b *bench) error {
	c, err := b.launch(ctx)
	if err != nil {
		return err
	}
	s, err := readSchema(c)
	if err != nil {
		return err
	}
	values := map[string]any{"string": "text-x7", "number": 1.5, "boolean": true, "array": []any{[]any{}}, "object": map[string]any{"x7": 1}}
	var errs []error
	n := 0
	for name, p := range s.Properties {
		for kind, value := range values {
			if kind == p.Type {
				continue
			}
			n++
			errs = append(errs, b.try(ctx, c, name, value, false))
		}
		errs = append(errs, b.try(ctx, c, name, nil, false))
	}
	return done(errs, "%d values of the wrong type", n)
}

// done joins errors, or returns a note about the checks that passed.
func done(errs []error, format string, args ...any) error {
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return suite.Note(fmt.Sprintf(format, args...))
}

func optionsBounds(ctx context.Context, b *bench) error {
	c, err := b.launch(ctx)
	if err != nil {
		return err
	}
	s, err := readSchema(c)
	if err != nil {
		return err
	}
	var errs []error
	for name, p := range s.Properties {
		if p.Minimum != nil {
			errs = append(errs, b.try(ctx, c, name, *p.Minimum-1, false))
		}
		if p.Maximum != nil {
			errs = append(errs, b.try(ctx, c, name, *p.Maximum+1, false))
		}
		if p.Enum != nil && p.Type == "string" {
			errs = append(errs, b.try(ctx, c, name, "none-of-these-x7", false))
		}
	}
	if len(errs) == 0 {
		return suite.Skip("no option has bounds or choices")
	}
	return done(errs, "%d bounds", len(errs))
}

func optionsRequired(ctx context.Context, b *bench) error {
	c, err := b.launch(ctx)
	if err != nil {
		return err
	}
	s, err := readSchema(c)
	if err != nil {
		return err
	}
	if len(s.Required) == 0 {
		return suite.Skip("no option is required")
	}
	var errs []error
	for _, name := range slices.Sorted(slices.Values(s.Required)) {
		errs = append(errs, b.try(ctx, c, name, nil, true))
	}
	return errors.Join(errs...)
}

func optionsGarbage(ctx context.Context, b *bench) error {
	c, err := b.launch(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, text := range []string{"nonsense", "[]", "null", "1", `"x"`, `{"a":`, "{} {}", "{}x", strings.Repeat("[", 10_000)} {
		q := b.request()
		q.OptionsJson = text
		_, err := c.OpenVolume(ctx, q)
		errs = append(errs, want(fmt.Sprintf("%.20q", text), err, codes.InvalidArgument))
	}
	return errors.Join(errs...)
}

func optionsKept(ctx context.Context, b *bench) error {
	c, _, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	if err := b.try(ctx, c, "no_such_option_x7", 1, false); err != nil {
		return err
	}
	_, err = c.GetScope(ctx, ref(id))
	return err
}
