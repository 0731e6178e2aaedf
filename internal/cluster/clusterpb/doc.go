// Package clusterpb is the service that a manager offers to nodes that join the cluster:
// cluster.proto and the code that protoc generates from it. internal/cluster imports it.
package clusterpb
