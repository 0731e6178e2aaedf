// Package integration tests deployments in a cluster with a whole manager. These tests are not in the folder above, because its
// own tests would make go test compile the API twice.
package integration
