package main

// product is a discrete GPU.
type product struct {
	model  string
	memory uint64 // 0 = the id does not determine it
}

const (
	maxSeries  = "Intel Data Center GPU Max"
	flexSeries = "Intel Data Center GPU Flex"
	arcPro     = "Intel Arc (Battlemage)"
	gib        = 1 << 30
)

// products are the supported devices by PCI device id, from the kernel's
// include/drm/intel/pciids.h. The memory is used only if the driver does not report it.
var products = map[string]product{
	"0b69": {maxSeries, 0}, "0b6e": {maxSeries, 0}, "0bd4": {maxSeries, 0}, "0bd6": {maxSeries, 0},
	"0bd5": {"Intel Data Center GPU Max 1550", 128 * gib},
	"0bd7": {maxSeries, 0}, "0bd8": {maxSeries, 0}, "0bd9": {maxSeries, 0},
	"0bda": {"Intel Data Center GPU Max 1100", 48 * gib},
	"0bdb": {maxSeries, 0}, "0be0": {maxSeries, 0}, "0be1": {maxSeries, 0}, "0be5": {maxSeries, 0},

	"56c0": {"Intel Data Center GPU Flex 170", 16 * gib},
	"56c1": {"Intel Data Center GPU Flex 140", 6 * gib}, // of each of its two GPUs
	"56c2": {flexSeries, 0},

	"56a0": {"Intel Arc A770", 0}, "56a1": {"Intel Arc A750", 8 * gib},
	"56a5": {"Intel Arc A380", 6 * gib}, "56a6": {"Intel Arc A310", 4 * gib},

	"e20b": {"Intel Arc B580", 12 * gib}, "e20c": {"Intel Arc B570", 10 * gib},
	"e211": {"Intel Arc Pro B60", 24 * gib}, "e212": {"Intel Arc Pro B50", 16 * gib},
	"e202": {arcPro, 0}, "e209": {arcPro, 0}, "e20d": {arcPro, 0}, "e210": {arcPro, 0}, "e215": {arcPro, 0}, "e216": {arcPro, 0},
	"e220": {arcPro, 0}, "e221": {arcPro, 0}, "e222": {arcPro, 0},
}
