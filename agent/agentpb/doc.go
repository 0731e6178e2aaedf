// Package agentpb is the contract between a manager and an agent: the gRPC service of agent.proto
// and what protoc generates from it. Both sides import it; agent.proto describes the life cycles.
package agentpb

// The allowed numbers of a KernelNetwork. They are above those that other programs of a host are
// likely to use at the same UDP port.
const (
	MinVNI = 1 << 20
	MaxVNI = 1<<24 - 1
)
