package report

// Layer is one layer of an image.
type Layer struct {
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}
