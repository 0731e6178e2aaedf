package acceleratortest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/big"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/suite"
)

var startChecks = []Check{
	{"cookie", "started by a person, the program prints an explanation and ends with an error", cookie},
	{"version", "a host that speaks only another contract is refused, not crashed", version},
	{"negotiation", "of several versions that a host offers, the common one is used", negotiation},
	{"describe", "the description is valid and the same every time", describe},
	{"display", "every slot begins with the key or a family and has all texts for pages", display},
	{"tls", "it serves with mutual TLS, or reports that it cannot", mutualTLS},
	{"unconfigured", "calls before Configure answer FAILED_PRECONDITION", unconfigured},
	{"preflight", "Preflight answers with named checks", preflight},
}

func cookie(ctx context.Context, b *bench) error { return b.program().Cookie(ctx) }

func version(_ context.Context, b *bench) error { return b.program().Version() }

func negotiation(_ context.Context, b *bench) error { return b.program().Negotiation() }

func describe(ctx context.Context, b *bench) error {
	c, err := b.launch(ctx) // validates the description
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
	return nil
}

// display checks texts that Launch does not require but people do, such as the descriptions of
// slots.
func display(ctx context.Context, b *bench) error {
	c, err := b.launch(ctx)
	if err != nil {
		return err
	}
	for _, s := range c.Description.GetSlots() {
		for what, text := range map[string]string{"display_name": s.GetDisplayName(), "description": s.GetDescription(), "unit": s.GetUnit(), "icon": s.GetIcon()} {
			if strings.TrimSpace(text) == "" {
				return fmt.Errorf("slot %s has no %s", s.GetName(), what)
			}
		}
		for _, x := range s.GetExclusiveWith() {
			if !slices.ContainsFunc(c.Description.GetSlots(), func(o *pb.SlotType) bool { return overlap(x, o.GetName()) }) {
				return fmt.Errorf("slot %s excludes %s, which is not described", s.GetName(), x)
			}
		}
	}
	return nil
}

// overlap reports whether a name that may end in * and one that may contain a * can match the same
// text.
func overlap(x, y string) bool {
	x, _, open := strings.Cut(x, "*")
	y, _, pattern := strings.Cut(y, "*")
	return x == y || (open || pattern) && (strings.HasPrefix(x, y) || strings.HasPrefix(y, x))
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

// mutualTLS offers a client certificate. A plugin that responds with its own in the sixth field of
// the handshake must use TLS with it. A plugin may ignore the offer, because go-plugin's TLS works
// in Go only; its operator then disables TLS.
func mutualTLS(ctx context.Context, b *bench) error {
	cert, err := certificate()
	if err != nil {
		return err
	}
	line, _, err := b.program().Handshake(ctx, "PLUGIN_CLIENT_CERT="+cert)
	if err != nil {
		return err
	}
	if p := strings.Split(line, "|"); len(p) < 6 || p[5] == "" {
		return suite.Skip("it serves without TLS; the agent's configuration must say so")
	}
	o := b.options()
	o.Plain = false
	c, err := accelerator.Launch(ctx, o, asking)
	if err != nil {
		return err
	}
	return c.Close()
}

func certificate() (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), err
}

var configChecks = []Check{
	{"config", "bad settings are refused and change nothing", badConfig},
	{"config-schema", "the schema's defaults are accepted, and values that it forbids are refused", configSchema},
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
		return fmt.Errorf("config_schema is not a JSON Schema: %w", err)
	}
	if s.Type != "object" || len(s.Properties) == 0 {
		return errors.New("config_schema does not describe an object with properties")
	}
	given := map[string]json.RawMessage{}
	if err := json.Unmarshal(b.request().GetConfigJson(), &given); err != nil && len(b.request().GetConfigJson()) > 0 {
		return fmt.Errorf("the settings are not a JSON object: %w", err)
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

var processChecks = []Check{
	{"sigterm", "SIGTERM ends the process within 5 s", sigterm},
	{"stdout", "nothing but the handshake line goes to standard output", stdout},
	{"frugal", "it starts within 5 s and stays below 256 MiB", frugal},
}

const maxStart = timeout

func sigterm(ctx context.Context, b *bench) error {
	c, _, err := b.ready(ctx)
	if err != nil {
		return err
	}
	w, err := c.WatchDevices(ctx, &pb.WatchDevicesRequest{}) // an open stream must not delay the exit
	if err != nil {
		return err
	}
	if _, err := w.Recv(); err != nil {
		return err
	}
	return suite.Terminates(c.Process, timeout)
}

func stdout(ctx context.Context, b *bench) error { return b.program().Stdout(ctx) }

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
	n, err := suite.Frugal(c.Process)
	if err != nil {
		return err
	}
	return suite.Note(fmt.Sprintf("ready after %.2f s with %d MiB", took.Seconds(), n))
}
