package report

// Counters are the amounts that partitions of a device share, by set and counter.
type Counters map[string]map[string]int64

// CounterUse are the amounts of a set's counters that a device uses while any part of it is
// allocated.
type CounterUse struct {
	Set     string           `json:"set"`
	Amounts map[string]int64 `json:"amounts"`
}

// Link is a connection between two devices of an agent; A and B are device ids.
type Link struct {
	A        string  `json:"a"`
	B        string  `json:"b"`
	Type     string  `json:"type"`     // pcie, nvlink, xgmi, nic, noc, same_board or unknown
	Distance int     `json:"distance"` // smaller is nearer, comparable within one plugin
	GBps     float64 `json:"gbps"`     // 0: unknown
	P2P      bool    `json:"p2p"`      // direct access to each other's memory
}
