// Command paced is a volume plugin for tests: a plain directory that reports rates while its file
// "pace" contains some.
package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

type paced struct {
	*driver.Directory
	file string
}

func (p paced) Performance(context.Context) (*pb.PerformanceSample, error) {
	text, err := os.ReadFile(p.file)
	if err != nil {
		return nil, status.Error(codes.Unavailable, "usage is not counted")
	}
	s := &pb.PerformanceSample{Subject: pb.PerformanceSample_WHOLE_CLUSTER, WindowMs: 5000, AsOfUnixMs: time.Now().UnixMilli()}
	return s, json.Unmarshal(text, &s.ReadOpsPerSecond)
}

func main() {
	driver.Run(driver.Backend[struct{}]{
		Vendor: "Berth", Name: "paced", Version: "1.0.0",
		Open: func(_ context.Context, m *driver.Mount, _ struct{}) (driver.Volume, error) {
			return paced{driver.NewDirectory(m, 0), filepath.Join(m.Path(), "pace")}, nil
		},
	})
}
