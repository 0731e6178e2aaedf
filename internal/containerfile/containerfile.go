// Package containerfile is the protocol over which a manager reads and changes the files in a
// container. The runner answers it on its stdin and stdout, as the container's user. A connection
// carries one request at a time: a request, its data, an answer, its data. Either side may be taken
// over by a user of the container, so sizes are limited, and neither side trusts the data of the
// other.
package containerfile

// Operations of a request.
const (
	List    = "list"    // a page of a directory
	Open    = "open"    // opens a file, which Read reads until the next Open
	Read    = "read"    // answered by data
	Archive = "archive" // answered by data
	Write   = "write"   // answered when the data can be sent, and again at its end
	Partial = "partial" // the number of stored bytes of an upload
	Discard = "discard" // removes an unfinished upload
	Mkdir   = "mkdir"
	Move    = "move"
	Remove  = "remove"
)

// Request asks for one operation. Paths are absolute, or relative to the home directory.
type Request struct {
	Op    string   `json:"op"`
	Path  string   `json:"path,omitempty"`
	Paths []string `json:"paths,omitempty"` // of Mkdir and Remove
	Items []Item   `json:"items,omitempty"` // of Move

	After string `json:"after,omitempty"` // of List: Next of the page before
	First int    `json:"first,omitempty"` // of List: the size of the page

	Offset int64 `json:"offset,omitempty"` // of Read and Write
	Length int64 `json:"length,omitempty"` // of Read, at most MaxRead

	Size     int64  `json:"size,omitempty"`     // of Write: of the whole file
	Upload   string `json:"upload,omitempty"`   // of Write, Partial and Discard: names an upload that can be resumed
	Modified int64  `json:"modified,omitempty"` // of Write: Unix milliseconds; 0: now
	Mode     uint32 `json:"mode,omitempty"`     // of Write: permissions of a new file; 0: as usual
	Tag      string `json:"tag,omitempty"`      // of Write: only replaces the file with this tag
	Absent   bool   `json:"absent,omitempty"`   // of Write: replaces no file

	Format    string `json:"format,omitempty"`    // of Archive: zip or tar
	Overwrite bool   `json:"overwrite,omitempty"` // of Move: replaces files
	Recursive bool   `json:"recursive,omitempty"` // of Remove: also directories that are not empty
}

// Item is one file or directory of a Move.
type Item struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Answer is the result of a request.
type Answer struct {
	Failure *Failure `json:"failure,omitempty"`
	Info    *Info    `json:"info,omitempty"`    // of Open, and of a finished Write
	Listing *Listing `json:"listing,omitempty"` // of List
	Results []Result `json:"results,omitempty"` // of Mkdir, Move and Remove
	Offset  int64    `json:"offset,omitempty"`  // of Partial and Write: the number of stored bytes
}

// Kinds of entries.
const (
	File      = "file"
	Directory = "directory"
	Symlink   = "symlink"
	Other     = "other"
)

// Info describes a file, directory or link.
type Info struct {
	Name       string `json:"name"`
	Path       string `json:"path"`
	Type       string `json:"type"`
	Size       int64  `json:"size"`
	Mode       string `json:"mode"`       // as ls prints it
	Modified   int64  `json:"modified"`   // Unix milliseconds
	Target     string `json:"target"`     // of a link
	TargetType string `json:"targetType"` // of a link; empty if the target does not exist
	Tag        string `json:"tag"`        // of an opened file: changes when the file does
}

// Listing is a page of a directory, in the order of the bytes of names.
type Listing struct {
	Path    string `json:"path"`
	Home    string `json:"home"`
	Entries []Info `json:"entries"`
	Next    string `json:"next"` // cursor of the next page; empty at the end
}

// Result is the outcome for one path. Failure is nil if it was done.
type Result struct {
	Path    string   `json:"path"`
	Failure *Failure `json:"failure,omitempty"`
}

// Classes of failures.
const (
	Invalid      = "invalid"
	NotFound     = "not found"
	Exists       = "exists"
	Denied       = "denied"
	Precondition = "precondition"
	Changed      = "changed" // the file does not have the Tag
	WrongOffset  = "wrong offset"
	NoSpace      = "no space"
	Broken       = "broken" // an error of the machine
)

// Failure is the reason, for people, why an operation failed.
type Failure struct {
	Class   string `json:"class"`
	Message string `json:"message"`
}

// Error implements error.
func (f *Failure) Error() string { return f.Message }

// Limits of the protocol.
const (
	MaxFirst  = 1000
	MaxPaths  = 1000
	MaxData   = 64 << 10 // of one frame of data
	MaxHeader = 8 << 20  // of a request or an answer: 1000 pairs of paths, each of whose bytes can take two
	MaxRead   = 1 << 20  // of one Read
	MaxSize   = 1 << 44  // of a file
)

// GoodUpload reports whether a text can be the name of an upload.
func GoodUpload(text string) bool {
	if len(text) < 8 || len(text) > 64 {
		return false
	}
	for _, r := range text {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') {
			return false
		}
	}
	return true
}
