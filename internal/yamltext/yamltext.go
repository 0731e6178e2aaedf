// Package yamltext decodes YAML of users. The library panics on some texts that are not valid; here, they
// are errors like all others.
package yamltext

import (
	"fmt"

	"github.com/containerd/errdefs"
	"github.com/goccy/go-yaml"
)

// Decode decodes a text. The class of errors is InvalidArgument, and their text names the line.
func Decode(text []byte, into any, options ...yaml.DecodeOption) (err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("it is not valid YAML: %w", errdefs.ErrInvalidArgument)
		}
	}()
	if err := yaml.UnmarshalWithOptions(text, into, options...); err != nil {
		return fmt.Errorf("%s: %w", yaml.FormatError(err, false, false), errdefs.ErrInvalidArgument)
	}
	return nil
}
