// Package cluster is the trust between components and the way they reach each
// other: the cluster's own certificate authority, the one-time join, and the
// tunnels that nodes (agents, storage proxies) open to every manager and serve
// gRPC on. Managers import Hub and CA, nodes import Node.
//
// A node listens nowhere. It dials a manager with TLS 1.3 and one of two
// application protocols:
//
//   - berth-join: the Cluster service. Join needs no certificate, only a
//     one-time token; the node knows the authority by its fingerprint.
//   - berth-tunnel: needs a certificate of this authority. The connection
//     becomes a yamux session on which the manager opens streams and is the
//     gRPC client. Streams that the node opens reach the Services that the
//     manager has for the node's role.
package cluster
