package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/berthhq/berth/plugins/accelerator/driver"
	"github.com/berthhq/berth/plugins/accelerator/sambanova/snml"
)

// asking limits the wait for the daemon's response.
const asking = time.Second

// platform returns the machine's type from the daemon.
func (m *machine) platform(ctx context.Context) (string, error) {
	if m.config.SNML == "" {
		return "", errors.New("the settings do not use SNML")
	}
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	conn, err := grpc.NewClient("passthrough:///"+m.config.SNML,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<10)))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	var info snml.SystemPlatformInfo
	if err := conn.Invoke(ctx, m.config.Method, &snml.ResourceQuery{}, &info); err != nil {
		return "", err
	}
	if why := strings.Join(info.GetErrorDetails(), "; "); why != "" {
		return "", errors.New("SNML says: " + driver.Clean(why, 150))
	}
	return driver.Clean(info.GetPlatformName(), 100), nil
}

// platforms are the types of machines whose RDUs are allocatable.
var platforms = []string{"SN30", "SN40L"}

func supported(platform string) bool {
	for _, p := range platforms {
		if strings.Contains(platform, p) {
			return true
		}
	}
	return false
}
