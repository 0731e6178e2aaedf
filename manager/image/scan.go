package image

import (
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
)

// ScanRegistryInput names the registry to read.
type ScanRegistryInput struct{ ID uuid.UUID }

// ScanResult is what became of one tag: an image or an error.
type ScanResult struct {
	Reference string
	Image     *ent.Image
	Error     *string
}

// ScanRegistryPayload is the registry and one result per tag and architecture.
type ScanRegistryPayload struct {
	Registry *ent.Registry
	Results  []*ScanResult
}
