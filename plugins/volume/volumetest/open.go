package volumetest

import (
	"os"
	"testing"

	"github.com/berthhq/berth/plugins/volume"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// Open starts a plugin until the end of the test and opens the volume "v", for a vendor's own
// tests. It returns the error of OpenVolume.
func Open(t *testing.T, program, mount, options string) (*volume.Client, *pb.OpenVolumeResponse, error) {
	t.Helper()
	c, err := volume.Launch(t.Context(), volume.Options{Path: program, SocketDir: os.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	r, err := c.OpenVolume(t.Context(), &pb.OpenVolumeRequest{Volume: "v", MountPath: mount, OptionsJson: options})
	return c, r, err
}
