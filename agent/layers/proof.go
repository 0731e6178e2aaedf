package layers

import (
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
)

// MaxDocument limits the size of an index or a manifest, as registries do.
const MaxDocument = 4 << 20

// maxDocuments is an index and the manifest for one platform.
const maxDocuments = 2

var validDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// document has the fields of an index and of a manifest that name other parts.
type document struct {
	Manifests []descriptor `json:"manifests"`
	Config    *descriptor  `json:"config"`
	Layers    []descriptor `json:"layers"`
}

type descriptor struct {
	Digest string `json:"digest"`
}

// belongs returns an error unless a part belongs to an image: its digest is that of the image, or one of the
// documents names it. The digest of the image leads to the documents, so a caller cannot invent one.
func belongs(image, part string, documents [][]byte) error {
	if len(documents) > maxDocuments {
		return fmt.Errorf("request has %d documents, not at most %d: %w", len(documents), maxDocuments, errdefs.ErrInvalidArgument)
	}
	known := map[string]bool{image: true}
	for i, text := range documents {
		if !known[digest.FromBytes(text).String()] {
			return fmt.Errorf("document %d does not belong to image %s: %w", i+1, image, errdefs.ErrPermissionDenied)
		}
		var d document
		if err := json.Unmarshal(text, &d); err != nil {
			return fmt.Errorf("document %d: %v: %w", i+1, err, errdefs.ErrInvalidArgument)
		}
		for _, child := range append(d.Manifests, d.Layers...) {
			known[child.Digest] = true
		}
		if d.Config != nil {
			known[d.Config.Digest] = true
		}
	}
	if !known[part] {
		return fmt.Errorf("%s does not belong to image %s: %w", part, image, errdefs.ErrPermissionDenied)
	}
	return nil
}
