package accelerator_test

import (
	"testing"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

func TestSlotsBelongToKeyOrFamily(t *testing.T) {
	d := func(slot string, families ...string) *pb.DescribeResponse {
		return &pb.DescribeResponse{Key: "furiosa", Vendor: "v", PluginVersion: "1", Families: families, Slots: []*pb.SlotType{
			{Name: slot, Kind: pb.SlotType_COUNT, DisplayName: "n", Unit: "u"},
		}}
	}
	for _, good := range []*pb.DescribeResponse{d("furiosa.device"), d("rngd.device", "warboy", "rngd")} {
		if err := accelerator.ValidateDescription(good); err != nil {
			t.Errorf("%v: %v", good, err)
		}
	}
	for _, bad := range []*pb.DescribeResponse{d("rngd.device"), d("rngd2.device", "rngd"), d("rngd.device", "rngd", "Bad Name")} {
		if accelerator.ValidateDescription(bad) == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}
