package report

import "time"

// RetentionRule says how long a registry keeps versions of images that no longer have a tag.
type RetentionRule struct {
	Prefix       string `json:"prefix"` // of repositories; "" = all
	UntaggedDays int    `json:"untaggedDays"`
	Versions     *int   `json:"versions,omitempty"` // of each repository, the newest; nil = all
}

// Sweep is what a sweep of a registry has freed, or would free.
type Sweep struct {
	At           time.Time `json:"at"`
	DryRun       bool      `json:"dryRun"`
	Repositories int       `json:"repositories"`
	Manifests    int       `json:"manifests"`
	Blobs        int       `json:"blobs"`
	Uploads      int       `json:"uploads"`
	FreedBytes   int64     `json:"freedBytes"`
	StoredBytes  int64     `json:"storedBytes"`
	FreeBytes    int64     `json:"freeBytes"`
	Unclear      int       `json:"unclear"`
	UnclearIn    string    `json:"unclearIn,omitempty"`
}
