package image

import "github.com/berthhq/berth/ent"

// StarterImage is an image that the source tree has a recipe for.
type StarterImage struct {
	Name, Tag, Title, Description string
	Command                       string     // that builds it
	Image                         *ent.Image // nil: none is registered
}
