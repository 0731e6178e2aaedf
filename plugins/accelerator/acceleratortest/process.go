package acceleratortest

import (
	"context"
	"fmt"
	"time"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/suite"
)

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
