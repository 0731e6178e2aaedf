package image

import (
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
)

// RegisterImageInput names one image of a known registry.
type RegisterImageInput struct{ Reference string }

// ImagePayload is a registered image.
type ImagePayload struct{ Image *ent.Image }

// ForgetImageInput names the image to take off the list.
type ForgetImageInput struct{ ID uuid.UUID }

// ForgetImagePayload is the image that is off the list.
type ForgetImagePayload struct{ ID uuid.UUID }
