// Package acceleratorpb is the accelerator contract: accelerator.proto and
// the Go code made from it. The proto file explains the life of a plugin, an
// allocation and a device; agents and plugins both import this package.
package acceleratorpb
