package device

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// lines describes the container's devices to people and programs inside it. The metadata of a
// plugin follows each of its devices, in the order in which the container numbers them.
type lines map[string]string

func (l lines) add(plugin string, r *acceleratorpb.PrepareResponse) error {
	all := maps.Clone(r.GetResourceData())
	if all == nil {
		all = map[string]string{}
	}
	prefix := strings.ToUpper(strings.ReplaceAll(plugin, "-", "_"))
	for i, d := range r.GetAttached() {
		at := fmt.Sprintf("%s_%d_", prefix, i)
		all[at+"DEVICE"] = d.GetDeviceId()
		for name, value := range map[string]string{"MODEL": d.GetModel(), "MEMORY": number(d.GetMemoryBytes()), "UNITS": number(uint64(d.GetProcessingUnits()))} {
			if value != "" {
				all[at+name] = value
			}
		}
	}
	for name, value := range all {
		if other, there := l[name]; there && other != value {
			return fmt.Errorf("resource_data: %s is said by another plugin already: %w", name, errdefs.ErrFailedPrecondition)
		}
		l[name] = value
	}
	return nil
}

// number returns "" for an unknown number.
func number(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

func (l lines) list() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(l)) {
		out = append(out, name+"="+l[name])
	}
	return out
}
