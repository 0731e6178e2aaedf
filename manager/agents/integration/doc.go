// Package integration tests agents in a cluster with a complete manager. It is a separate package
// because the tests of agents itself would otherwise make go test compile the API a second time.
package integration
