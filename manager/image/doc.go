// Package image knows which container images sessions can start from: the
// registries, what a scan found there, and how a reference is resolved.
package image
