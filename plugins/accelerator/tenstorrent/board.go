package main

import (
	"strings"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// board is a product. The driver reports neither memory nor cores, so they come from the product's
// data sheet.
type board struct {
	slot   string
	model  string
	chips  uint32
	memory uint64
	cores  uint32 // Tensix
}

const gib = 1 << 30

// boards by the driver's name. A Galaxy shows each of its 32 chips as a board.
var boards = map[string]board{
	"n150":            {"tt-n150.device", "Wormhole n150", 1, 12 * gib, 72},
	"n300":            {"tt-n300.device", "Wormhole n300", 2, 24 * gib, 128},
	"galaxy-wormhole": {"tt-galaxy.device", "Wormhole Galaxy", 1, 12 * gib, 80},
}

const otherSlot = key + ".device"

func slots() []*pb.SlotType {
	slot := func(name, display, description, unit string) *pb.SlotType {
		return &pb.SlotType{Name: name, Kind: pb.SlotType_COUNT, DisplayName: display, Description: description, Unit: unit, Icon: key}
	}
	return []*pb.SlotType{
		slot("tt-n150.device", "n150", "Wormhole board with one chip", "n150"),
		slot("tt-n300.device", "n300", "Wormhole board with two chips", "n300"),
		slot("tt-galaxy.device", "Galaxy", "Wormhole chip of a Galaxy", "chip"),
		slot(otherSlot, "Tenstorrent", "Board of another generation", "board"),
	}
}

// generations by PCI device id.
var generations = map[string]string{"401e": "Wormhole", "b140": "Blackhole", "faca": "Grayskull"}

// product returns the board for the driver's name of it. The products n300s and n300d differ only
// in cooling.
func product(card string) (board, bool) {
	card = strings.ToLower(card)
	if b, ok := boards[card]; ok {
		return b, true
	}
	b, ok := boards[strings.TrimRight(card, "sd")]
	return b, ok
}
