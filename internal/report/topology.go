package report

// Counters are what partitions of devices share: by set and counter, amounts.
type Counters map[string]map[string]int64

// CounterUse is what giving away any part of a device takes from the counters
// of a set.
type CounterUse struct {
	Set     string           `json:"set"`
	Amounts map[string]int64 `json:"amounts"`
}

// Link is how two devices of an agent reach each other; A and B are device ids.
type Link struct {
	A        string  `json:"a"`
	B        string  `json:"b"`
	Type     string  `json:"type"`     // pcie, nvlink, xgmi, nic, noc, same_board or unknown
	Distance int     `json:"distance"` // smaller is nearer, comparable within one plugin
	GBps     float64 `json:"gbps"`     // 0: unknown
	P2P      bool    `json:"p2p"`      // direct access to each other's memory
}
