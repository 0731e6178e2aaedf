package session

import (
	"fmt"
	"strings"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
)

// held returns the current allocations of a kernel.
func held(k *client.Kernel) []client.Allocation {
	var out []client.Allocation
	for _, al := range k.Allocations {
		if al.Device != nil && al.FreedAt == nil && al.Slot != "cpu" && al.Slot != "mem" {
			out = append(out, al)
		}
	}
	return out
}

func devicesText(k *client.Kernel) string {
	var parts []string
	for _, al := range held(k) {
		parts = append(parts, fmt.Sprintf("%s of %s", al.Amount, al.Device.DeviceID))
	}
	return strings.Join(parts, ", ")
}

// ailing prints the unhealthy devices of a session. The session continues with them, because only
// its owner knows whether they are still useful.
func ailing(s cli.Sheet, d *client.SessionDetail) {
	shown := map[string]bool{}
	for i := range d.Kernels {
		for _, al := range held(&d.Kernels[i]) {
			if dev := al.Device; dev.Health != "" && dev.Health != "HEALTHY" && !shown[dev.ID] {
				shown[dev.ID] = true
				s.Fact("Trouble", strings.TrimSuffix(fmt.Sprintf("its device %s is %s: %s", dev.DeviceID, dev.Health, dev.HealthMessage), ": "))
			}
		}
	}
}
