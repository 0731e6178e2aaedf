package main

import (
	"context"

	"github.com/berthhq/berth/plugins/volume/driver"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// one is a volume whose scopes are directories of one file system. The array has no limits for
// directories, so only the proxy enforces them.
type one struct {
	*driver.Directory
	*blade
}

// Health implements driver.Volume.
func (v *one) Health(ctx context.Context) (*pb.HealthReport, error) {
	h, err := v.Directory.Health(ctx)
	if err == nil {
		v.health(ctx, h)
	}
	return h, err
}

// Capacity implements driver.Sizer. It returns the file system's size, as df does.
func (v *one) Capacity(ctx context.Context) (*pb.CapacityReport, error) {
	return v.Directory.Capacity(ctx)
}

// Close implements driver.Volume.
func (v *one) Close() error {
	v.client.Close()
	return v.Directory.Close()
}
