package acceleratortest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/suite"
)

var configChecks = []Check{
	{"config", "bad settings are refused and change nothing", badConfig},
	{"config-schema", "the schema's defaults are accepted, what it forbids is refused", configSchema},
}

func badConfig(ctx context.Context, b *bench) error {
	c, before, err := b.ready(ctx)
	if err != nil {
		return err
	}
	if len(c.Description.GetConfigSchema()) == 0 {
		return suite.Skip("the plugin has no settings")
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

// schema is the part of JSON Schema that settings use.
type schema struct {
	Type       string                `json:"type"`
	Required   []string              `json:"required"`
	Properties map[string]properties `json:"properties"`
}

type properties struct {
	Type    any             `json:"type"` // a name or a list of names
	Default json.RawMessage `json:"default"`
}

func configSchema(ctx context.Context, b *bench) error {
	c, _, err := b.ready(ctx)
	if err != nil {
		return err
	}
	raw := c.Description.GetConfigSchema()
	if len(raw) == 0 {
		return suite.Skip("the plugin has no settings")
	}
	var s schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return fmt.Errorf("config_schema is no JSON Schema: %w", err)
	}
	if s.Type != "object" || len(s.Properties) == 0 {
		return errors.New("config_schema does not describe an object with properties")
	}
	given := map[string]json.RawMessage{}
	if err := json.Unmarshal(b.request().GetConfigJson(), &given); err != nil && len(b.request().GetConfigJson()) > 0 {
		return fmt.Errorf("the settings given are no JSON object: %w", err)
	}
	for name := range given {
		if _, ok := s.Properties[name]; !ok {
			return fmt.Errorf("config_schema does not know the setting %q, which is accepted", name)
		}
	}
	with := maps.Clone(given)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		if len(p.Default) > 0 && given[name] == nil {
			with[name] = p.Default
		}
		wrong := json.RawMessage(`{"no such": ["thing"]}`)
		if types := fmt.Sprint(p.Type); strings.Contains(types, "object") || p.Type == nil {
			wrong = json.RawMessage(`[[]]`)
		}
		spoilt := maps.Clone(given)
		spoilt[name] = wrong
		if err := want("setting "+name+" of a wrong type", b.try(ctx, c, spoilt), codes.InvalidArgument); err != nil {
			return err
		}
	}
	return want("all defaults", b.try(ctx, c, with), codes.OK)
}

// try configures the plugin with the settings.
func (b *bench) try(ctx context.Context, c *accelerator.Client, settings map[string]json.RawMessage) error {
	raw, err := json.Marshal(settings)
	if err != nil {
		return err
	}
	req := b.request()
	req.ConfigJson = raw
	_, err = c.Configure(ctx, req)
	return err
}

// files returns the files of a tree with their sizes.
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

// equal compares snapshots without their revisions.
func equal(what string, x, y *pb.DeviceSnapshot) error {
	x, y = proto.Clone(x).(*pb.DeviceSnapshot), proto.Clone(y).(*pb.DeviceSnapshot)
	x.Revision, y.Revision = 0, 0
	if !proto.Equal(x, y) {
		return fmt.Errorf("%s:\n%v\n%v", what, x, y)
	}
	return nil
}
