// Package store keeps the blobs, manifests and tags of the embedded registry in a directory, in the layout
// of github.com/distribution/distribution, and frees what nothing refers to while clients push.
package store
