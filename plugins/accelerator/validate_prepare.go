package accelerator

import (
	"strings"
	"unicode"
	"unicode/utf8"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// Limits of the lines in a response to Prepare.
const (
	maxKey   = 64
	maxValue = 4 << 10
)

// ValidatePrepared checks the form of a response to Prepare: its edits, its devices, and its lines
// for the container.
func ValidatePrepared(r *pb.PrepareResponse) error {
	var is issues
	if err := ValidateEdits(r.GetEdits()); err != nil {
		is.add("edits: %w", err)
	}
	if n := len(r.GetAttached()); n > MaxDevices {
		is.add("%d attached devices are more than %d", n, MaxDevices)
		return is.err()
	}
	for _, d := range r.GetAttached() {
		if !IsDeviceID(d.GetDeviceId()) {
			is.add("attached device %.80q: it is not the id of a device", d.GetDeviceId())
		}
		if !printable(d.GetModel()) || len(d.GetModel()) > maxText {
			is.add("attached device %s: model %.80q is not one line of at most %d bytes", d.GetDeviceId(), d.GetModel(), maxText)
		}
	}
	is.entries("resource_data", len(r.GetResourceData()))
	for key, value := range r.GetResourceData() {
		if !envForm.MatchString(key) || len(key) > maxKey {
			is.add("resource_data: %.80q is not a name of at most %d of A-Z a-z 0-9 _", key, maxKey)
		} else if !printable(value) || len(value) > maxValue {
			is.add("resource_data: %s is not one line of at most %d bytes", key, maxValue)
		}
	}
	return is.err()
}

// printable reports whether a text is one line of printable characters.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' })
}
