package report

// Overlay is the endpoint at which kernels on other agents reach those of an agent.
type Overlay struct {
	Endpoint string `json:"endpoint,omitempty"` // address and UDP port; "": they cannot
	MTU      int    `json:"mtu,omitempty"`      // largest packet of a kernel
	Off      string `json:"off,omitempty"`      // why they cannot
}
