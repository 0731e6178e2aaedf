package accelerator

import (
	"context"
	"time"

	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/process"
)

const (
	callTimeout    = 10 * time.Second
	prepareTimeout = 60 * time.Second
)

// ErrChecksum is in Launch's error if the program has the wrong checksum.
var ErrChecksum = process.ErrChecksum

// Options describe the program to start.
type Options = process.Options

// Client is a running plugin. Its unary calls have the contract's deadlines, unless the caller's
// context has an earlier one.
type Client struct {
	acceleratorpb.AcceleratorClient
	*process.Described[*acceleratorpb.DescribeResponse]
}

// deadline returns the timeout of a call.
func deadline(method string) time.Duration {
	if method == acceleratorpb.Accelerator_Prepare_FullMethodName {
		return prepareTimeout
	}
	return callTimeout
}

// Launch starts a plugin, sends it the description of the caller and validates its description. The
// caller must close the client.
func Launch(ctx context.Context, o Options, who *acceleratorpb.DescribeRequest) (*Client, error) {
	a, p, err := process.Launch(ctx, Contract(), o, acceleratorpb.NewAcceleratorClient, who, ValidateDescription)
	if err != nil {
		return nil, err
	}
	return &Client{a, p}, nil
}
