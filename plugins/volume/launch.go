package volume

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/berthhq/berth/plugins/process"
	"github.com/berthhq/berth/plugins/volume/volumepb"
)

// callTimeout is long enough for REST products, which handle a scope call in a job of several
// seconds.
const callTimeout = 30 * time.Second

// ErrChecksum is in Launch's error if the program has the wrong checksum.
var ErrChecksum = process.ErrChecksum

// Options describe the program to start.
type Options = process.Options

// Client is a running plugin. Its unary calls end after 30 s unless the caller's context ends
// earlier.
type Client struct {
	volumepb.VolumeClient
	*process.Described[*volumepb.DescribeResponse]
}

// deadline returns the timeout of a call.
func deadline(string) time.Duration { return callTimeout }

// Launch starts a plugin, calls Describe and validates the response. The caller must close the
// client.
func Launch(ctx context.Context, o Options) (*Client, error) {
	v, p, err := process.Launch(ctx, Contract(), o, volumepb.NewVolumeClient, &volumepb.DescribeRequest{}, ValidateDescription)
	if err != nil {
		return nil, err
	}
	return &Client{v, p}, nil
}

var backendName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// ValidateDescription checks a plugin's description.
func ValidateDescription(d *volumepb.DescribeResponse) error {
	if !backendName.MatchString(d.GetBackend()) {
		return fmt.Errorf("backend %q is not a valid name", d.GetBackend())
	}
	if d.GetVendor() == "" || d.GetVersion() == "" {
		return errors.New("vendor and version must be set")
	}
	if s := d.GetOptionsSchema(); s != "" {
		var object map[string]any
		if err := json.Unmarshal([]byte(s), &object); err != nil {
			return fmt.Errorf("options_schema is not a JSON object: %w", err)
		}
	}
	return nil
}
