package device

import (
	"slices"
	"testing"

	ocispecs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// A process that is not root opens a device file through its group, so the groups that a plugin
// names are added to the container's groups.
func TestGroupsOfDeviceFilesReachTheContainer(t *testing.T) {
	spec := &ocispecs.Spec{Process: &ocispecs.Process{User: ocispecs.User{UID: 1000, AdditionalGids: []uint32{7}}}, Linux: &ocispecs.Linux{}}
	if err := apply(spec, &acceleratorpb.ContainerEdits{AdditionalGids: []uint32{44, 109}}, Allow{}, origins{}); err != nil {
		t.Fatal(err)
	}
	if got := spec.Process.User.AdditionalGids; !slices.Equal(got, []uint32{7, 44, 109}) {
		t.Errorf("groups %v", got)
	}
}
