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

// ErrChecksum is in Launch's error when the program is not the one expected.
var ErrChecksum = process.ErrChecksum

// Options say which program to start and how.
type Options = process.Options

// Client is a running plugin. Its unary calls carry the contract's deadlines
// unless the caller's context has a nearer one.
type Client struct {
	acceleratorpb.AcceleratorClient
	*process.Described[*acceleratorpb.DescribeResponse]
}

// deadline of a call.
func deadline(method string) time.Duration {
	if method == acceleratorpb.Accelerator_Prepare_FullMethodName {
		return prepareTimeout
	}
	return callTimeout
}

// Launch starts a plugin, says who asks and checks the answer. The caller closes
// the client.
func Launch(ctx context.Context, o Options, who *acceleratorpb.DescribeRequest) (*Client, error) {
	a, p, err := process.Launch(ctx, Contract(), o, acceleratorpb.NewAcceleratorClient, who, ValidateDescription)
	if err != nil {
		return nil, err
	}
	return &Client{a, p}, nil
}
