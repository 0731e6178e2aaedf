// Package image manages the container images that sessions can start from: the registries, the
// results of scans, and the resolution of references.
package image
