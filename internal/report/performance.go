package report

import "time"

// Performance are rates over a window as a volume's product reports them; nil means unknown.
type Performance struct {
	WholeCluster        bool      `json:"wholeCluster,omitempty"` // of all volumes of the product, not only of this one
	At                  time.Time `json:"at"`
	WindowSeconds       float64   `json:"windowSeconds"`
	ReadOpsPerSecond    *float64  `json:"readOpsPerSecond,omitempty"`
	WriteOpsPerSecond   *float64  `json:"writeOpsPerSecond,omitempty"`
	ReadBytesPerSecond  *float64  `json:"readBytesPerSecond,omitempty"`
	WriteBytesPerSecond *float64  `json:"writeBytesPerSecond,omitempty"`
	ReadLatencyMicros   *float64  `json:"readLatencyMicros,omitempty"`
	WriteLatencyMicros  *float64  `json:"writeLatencyMicros,omitempty"`
}
