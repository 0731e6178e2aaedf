// Package acceleratorpb is the accelerator contract: accelerator.proto and the Go code generated
// from it. The proto file documents the life cycles of a plugin, an allocation and a device. Agents
// and plugins import this package.
package acceleratorpb
