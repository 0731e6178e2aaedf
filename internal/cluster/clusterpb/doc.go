// Package clusterpb is the service a manager offers to nodes that join the
// cluster: cluster.proto and what protoc generates from it. internal/cluster
// imports it.
package clusterpb
