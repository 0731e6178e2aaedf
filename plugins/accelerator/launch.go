package accelerator

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"

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
	*process.Process
	// Description is what the plugin answered to the first call, checked.
	Description *acceleratorpb.DescribeResponse
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
	c := &Client{}
	var err error
	c.Process, err = process.Open(ctx, Contract(), o, func(ctx context.Context, conn *grpc.ClientConn) error {
		c.AcceleratorClient = acceleratorpb.NewAcceleratorClient(conn)
		d, err := c.Describe(ctx, who)
		if err == nil {
			err = ValidateDescription(d)
		}
		if err != nil {
			return fmt.Errorf("describe: %w", err)
		}
		c.Description = d
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Ping makes a call that touches no hardware and fails when it is not answered
// in time: the way to notice a process that is alive but stuck.
func (c *Client) Ping(ctx context.Context) error {
	if _, err := c.Describe(ctx, &acceleratorpb.DescribeRequest{}); err != nil {
		return fmt.Errorf("ping plugin %s: %w", c.Description.Key, err)
	}
	return nil
}
