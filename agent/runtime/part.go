package runtime

import (
	"context"
	"io"
)

// Peers are the other agents that have parts of one image or are fetching them: its index and manifest, its
// configuration, its layers. Pull verifies everything that they send.
type Peers interface {
	// Open opens a part at another agent. It returns nil if the part should come from the registry.
	Open(ctx context.Context, r PartRequest) (PeerPart, error)
	// Ended reports that Pull has the part, or has given up. It is called once for every part for which
	// Open was called.
	Ended(digest string, present bool)
}

// PartRequest names a part of an image.
type PartRequest struct {
	Digest string
	Offset int64 // of the first byte to send
	// Documents are the index and the manifest, as far as the caller has them. The other agent learns
	// from them that the part belongs to the image.
	Documents [][]byte
}

// PeerPart is a part that another agent sends.
type PeerPart interface {
	// Read returns io.EOF after the last byte, and another error if the other agent stops before.
	io.ReadCloser
	Agent() string // its name
	// Corrupt reports that the bytes did not have the digest of the part, and that no other source has
	// sent any of them. The agent is not asked again for some minutes, unless it had found that out too.
	Corrupt(ctx context.Context)
}

// Parts are the parts of images on this host. A runtime that implements it can serve other agents.
type Parts interface {
	// OpenPart opens a part that is complete or that a pull is writing, and returns NotFound for others.
	OpenPart(ctx context.Context, digest string) (Part, error)
}

// Part is an open part. The caller closes it.
type Part interface {
	io.ReaderAt // of the bytes that are available
	io.Closer
	Size() int64
	// Await waits until more than n bytes are available, or until the part is complete, and returns their
	// number and whether the part is complete. A part is complete after its digest has been verified. An
	// error means that its bytes must not be used.
	Await(ctx context.Context, n int64) (available int64, complete bool, err error)
}

// ImageRemover is a runtime that can remove images to free space.
type ImageRemover interface {
	// RemoveImage removes an image as Images has returned it, with the parts that no other image has. It
	// returns FailedPrecondition if a container uses the image, or if it was used or pulled again since.
	RemoveImage(ctx context.Context, img Image) error
	// ImageDisk returns the size of the disk of images, and the free bytes.
	ImageDisk() (size, free int64, err error)
}
