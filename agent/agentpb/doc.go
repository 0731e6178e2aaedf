// Package agentpb is the contract between a manager and an agent: the gRPC
// service of agent.proto and what protoc generates from it. Both sides import
// it; agent.proto itself tells the life cycles.
package agentpb
