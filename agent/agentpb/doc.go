// Package agentpb is the contract between a manager and an agent: the gRPC
// service of agent.proto and what protoc generates from it. Both sides import
// it; agent.proto itself tells the life cycles.
package agentpb

// The numbers that a KernelNetwork may have. They are above those that other
// programs of a host are likely to use at the same UDP port.
const (
	MinVNI = 1 << 20
	MaxVNI = 1<<24 - 1
)
