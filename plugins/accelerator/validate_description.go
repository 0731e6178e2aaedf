package accelerator

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

const maxSchema = 64 << 10

var (
	keyForm    = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)
	slotForm   = regexp.MustCompile(`^[a-z][a-z0-9.:+-]{0,63}$`)
	vendorForm = regexp.MustCompile(`^[0-9a-f]{4}(/[0-9a-f]{2,6})?$`)
)

// ValidateDescription checks a plugin's response to Describe.
func ValidateDescription(d *pb.DescribeResponse) error {
	var is issues
	if !keyForm.MatchString(d.GetKey()) {
		is.add("key %.40q is malformed", d.GetKey())
	}
	if d.GetPluginVersion() == "" || d.GetVendor() == "" {
		is.add("plugin_version and vendor must be set")
	}
	is.text("plugin_version", d.GetPluginVersion())
	is.text("vendor", d.GetVendor())
	is.entries("families", len(d.GetFamilies()))
	is.entries("pci_vendors", len(d.GetPciVendors()))
	is.entries("capabilities", len(d.GetCapabilities()))
	if s := d.GetConfigSchema(); len(s) > maxSchema || len(s) > 0 && !json.Valid(s) {
		is.add("config_schema of %d bytes must be JSON of at most %d bytes", len(s), maxSchema)
	}
	if n := len(d.GetSlots()); n == 0 || n > MaxSlots {
		is.add("%d slots, want 1 to %d", n, MaxSlots)
		return is.err()
	}
	for _, f := range d.GetFamilies() {
		if !keyForm.MatchString(f) {
			is.add("family %.40q is malformed", f)
		}
	}
	slots(&is, d, d.GetSlots(), true)
	for _, v := range d.GetPciVendors() {
		if !vendorForm.MatchString(v) {
			is.add("pci vendor %.40q is not four hexadecimal digits, nor those with a class: 8086/03", v)
		}
	}
	return is.err()
}

// slots checks slot types and returns them by name.
func slots(is *issues, d *pb.DescribeResponse, list []*pb.SlotType, patterns bool) map[string]*pb.SlotType {
	known := make(map[string]*pb.SlotType, len(list))
	for _, s := range list {
		name := s.GetName()
		form := name
		if patterns {
			form = strings.Replace(name, ":*", ":x", 1)
		}
		switch {
		case !slotForm.MatchString(form) || !owned(d, name):
			is.add("slot %.80q is malformed or does not begin with %q or a family", name, d.GetKey()+".")
		case known[name] != nil:
			is.add("slot %q is listed twice", name)
		case s.GetKind() != kindOf(name) && (kindOf(name) != pb.SlotType_COUNT || !whole(s.GetKind())):
			is.add("slot %q: kind %v does not agree with the name", name, s.GetKind())
		case s.GetDisplayName() == "" || s.GetUnit() == "":
			is.add("slot %q: display_name and unit must be set", name)
		}
		for what, text := range map[string]string{"display_name": s.GetDisplayName(), "description": s.GetDescription(), "unit": s.GetUnit(), "icon": s.GetIcon()} {
			is.text(fmt.Sprintf("slot %.80q: %s", name, what), text)
		}
		is.entries(fmt.Sprintf("slot %.80q: exclusive_with", name), len(s.GetExclusiveWith()))
		is.entries(fmt.Sprintf("slot %.80q: allowed_counts", name), len(s.GetAllowedCounts()))
		if len(s.GetAllowedCounts()) > 0 && !whole(s.GetKind()) {
			is.add("slot %.80q: allowed_counts are only for counted slots, not for kind %v", name, s.GetKind())
		}
		for i, n := range s.GetAllowedCounts() {
			if n == 0 || i > 0 && n <= s.GetAllowedCounts()[i-1] {
				is.add("slot %.80q: allowed_counts are not above 0 and growing", name)
				break
			}
		}
		if q := s.GetQuantum(); q != "" {
			if n, err := ParseAmount(s.GetKind(), q); err != nil || n == 0 {
				is.add("slot %q: quantum %.40q is not an amount", name, q)
			}
		}
		if s.GetUnified() && s.GetKind() == pb.SlotType_UNIQUE {
			is.add("slot %.80q: unified is not allowed for kind %v, which only one kernel can use on a device", name, s.GetKind())
		}
		known[name] = s
	}
	apart(is, known)
	return known
}

// apart checks that aliases of one amount do not exclude each other.
func apart(is *issues, known map[string]*pb.SlotType) {
	for name, s := range known {
		for _, x := range s.GetExclusiveWith() {
			for other, o := range known {
				if name != other && s.GetUnified() && o.GetUnified() && matches(x, other) {
					is.add("slot %.80q: excludes %.80q, and both are unified", name, other)
				}
			}
		}
	}
}

// owned reports whether a slot begins with the plugin's key or one of its families.
func owned(d *pb.DescribeResponse, slot string) bool {
	first, _, _ := strings.Cut(slot, ".")
	return first == d.GetKey() || slices.Contains(d.GetFamilies(), first)
}

// kindOf returns the kind that follows from a slot's name, a rule of the whole platform.
func kindOf(slot string) pb.SlotType_Kind {
	switch {
	case strings.HasSuffix(slot, ".shares"):
		return pb.SlotType_SHARES
	case strings.HasSuffix(slot, ".mem"):
		return pb.SlotType_BYTES
	}
	return pb.SlotType_COUNT
}

func whole(k pb.SlotType_Kind) bool {
	return k == pb.SlotType_COUNT || k == pb.SlotType_UNIQUE
}
