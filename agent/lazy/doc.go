// Package lazy makes the files of an image available before its layers have been fetched. A process for
// each image (Main) has a read-only FUSE file system of all its layers. It reads parts of layers from the
// registry when files are read, and from containerd's content store once the layers are there. Every part
// is verified before its first use. The process outlives the agent, because containers do.
//
// The layers must be in the format eStargz or zstd:chunked: archives with an index of their files, whose
// digest is in the manifest.
package lazy

import "time"

// The limits of an image. Images beyond them are pulled as a whole.
const (
	maxFiles = 1_000_000 // in all layers
	maxTOC   = 128 << 20 // bytes of the index of one layer
	maxChunk = 32 << 20  // bytes of a part of a file that is compressed by itself
	maxBlob  = 1 << 40   // bytes of a layer
	memory   = 1 << 30   // soft limit of the process
	chunks   = 32 << 20  // bytes of decompressed chunks in memory
	readers  = 16        // reads that are served at the same time
	block    = 128 << 10 // unit of the cache on disk, and the smallest read from the registry
	maxRange = 8 << 20   // the largest read from the registry
)

// DefaultTimeout is the time after which a read fails if the registry does not send the bytes.
const DefaultTimeout = 30 * time.Second

// Request describes the image and its registry. It is passed through a pipe and never stored on disk.
type Request struct {
	Dir     string        // of this image; Main creates the rest of it
	Store   string        // directory of containerd's content store
	Image   string        // digest
	Layers  []Layer       // the lowest first
	Timeout time.Duration // 0: DefaultTimeout

	Reference          string
	PlainHTTP          bool
	Username, Password string
	Proxy              string
	Certificates       string
}

// Layer is a layer with an index.
type Layer struct {
	Digest string
	Size   int64
	TOC    string // digest of the index
	Zstd   bool   // zstd:chunked, otherwise eStargz
}

// Status is the state of the file system of an image.
type Status struct {
	Total   int64         // bytes of all layers
	Local   int64         // bytes of them that are on this machine
	Fetched int64         // bytes that reads have fetched from the registry
	Waiting int           // reads that wait for the registry
	Refused int64         // parts that did not have their digest
	Idle    time.Duration // since a read last waited
	Failing string        // why reads fail now, "" = they do not
}

// Complete reports whether the registry is no longer needed.
func (s Status) Complete() bool { return s.Local == s.Total }
