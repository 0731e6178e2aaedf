// Package commit makes an image layer of the writable layer of a container that runs. The files are
// copied while the container runs; only those that changed meanwhile are copied while it is paused.
// The same files result in the same bytes. Package push sends the result to a registry.
package commit
