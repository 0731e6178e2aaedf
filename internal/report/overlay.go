package report

// Overlay is how kernels on other agents reach those of an agent.
type Overlay struct {
	Endpoint string `json:"endpoint,omitempty"` // address and UDP port; "": they do not
	MTU      int    `json:"mtu,omitempty"`      // what a packet of a kernel may have
	Off      string `json:"off,omitempty"`      // why they do not
}
