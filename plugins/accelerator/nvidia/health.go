package main

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// ill is the effect of an event on a GPU's health.
type ill struct {
	health  pb.Health
	message string
}

// ward has the effects of events by uuid, until it is cleared.
type ward struct {
	mu   sync.Mutex
	ills map[string]ill
}

// note keeps the worst effect.
func (w *ward) note(uuid string, i ill) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ills == nil {
		w.ills = map[string]ill{}
	}
	if w.ills[uuid].health < i.health {
		w.ills[uuid] = i
	}
}

func (w *ward) of(uuid string) (ill, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i, ok := w.ills[uuid]
	return i, ok
}

func (w *ward) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ills = nil
}

// xids maps the driver's error numbers to the GPU's health. Other numbers mean degraded.
var xids = map[uint64]pb.Health{
	// These are errors of a program, not of the GPU.
	13: pb.Health_HEALTH_HEALTHY, 31: pb.Health_HEALTH_HEALTHY, 43: pb.Health_HEALTH_HEALTHY,
	45: pb.Health_HEALTH_HEALTHY, 68: pb.Health_HEALTH_HEALTHY, 109: pb.Health_HEALTH_HEALTHY,
	48:  pb.Health_HEALTH_UNHEALTHY,                                  // uncorrectable memory error
	62:  pb.Health_HEALTH_UNHEALTHY,                                  // internal micro-controller halt
	63:  pb.Health_HEALTH_DEGRADED,                                   // row remapped, effective after a reset
	64:  pb.Health_HEALTH_UNHEALTHY,                                  // row cannot be remapped
	74:  pb.Health_HEALTH_DEGRADED,                                   // NVLink error
	79:  pb.Health_HEALTH_LOST,                                       // fallen off the bus
	94:  pb.Health_HEALTH_DEGRADED,                                   // contained memory error
	95:  pb.Health_HEALTH_UNHEALTHY,                                  // uncontained memory error
	119: pb.Health_HEALTH_UNHEALTHY, 120: pb.Health_HEALTH_UNHEALTHY, // system processor
}

// listen receives error events until the driver is closed. Drivers without events (virtual GPUs,
// WSL) are supported.
func (v *vendor) listen(d *management) {
	set, ret := d.lib.EventSetCreate()
	if ret != nvml.SUCCESS {
		return
	}
	n, _ := d.lib.DeviceGetCount()
	for i := range n {
		if h, ret := d.lib.DeviceGetHandleByIndex(i); ret == nvml.SUCCESS {
			_ = h.RegisterEvents(nvml.EventTypeXidCriticalError|nvml.EventTypeDoubleBitEccError, set)
		}
	}
	d.events.Go(func() {
		defer set.Free()
		for {
			select {
			case <-d.stop:
				return
			default:
			}
			switch e, ret := set.Wait(500); ret {
			case nvml.SUCCESS:
				v.heard(e)
			case nvml.ERROR_TIMEOUT:
			default:
				select { // a lost GPU makes Wait return at once, so this limits the rate
				case <-d.stop:
				case <-time.After(500 * time.Millisecond):
				}
			}
		}
	})
}

// heard records an event for the next scan. It must not wait for NVML's lock, whose owner may be in
// close, waiting for the listener to end.
func (v *vendor) heard(e nvml.EventData) {
	uuid, ret := e.Device.GetUUID()
	if ret != nvml.SUCCESS {
		return
	}
	is, text := pb.Health_HEALTH_UNHEALTHY, "double-bit memory error"
	if e.EventType == nvml.EventTypeXidCriticalError {
		var known bool
		if is, known = xids[e.EventData]; !known {
			is = pb.Health_HEALTH_DEGRADED
		}
		text = fmt.Sprintf("XID %d", e.EventData)
	}
	if is == pb.Health_HEALTH_HEALTHY {
		return
	}
	v.sick.note(uuid, ill{is, text})
}

// ail applies recorded events to a GPU's health.
func (v *vendor) ail(d *pb.Device, g *gpu) {
	card := cmp.Or(g.parent, g)
	if card.hot {
		d.Health, d.HealthMessage = pb.Health_HEALTH_DEGRADED, "it is so hot that it slows down"
	}
	if i, ok := v.sick.of(card.id); ok {
		d.Health, d.HealthMessage = i.health, i.message
	}
	if card.lost {
		d.Health, d.HealthMessage = pb.Health_HEALTH_LOST, "GPU is lost"
	}
	if d.Health == pb.Health_HEALTH_UNHEALTHY || d.Health == pb.Health_HEALTH_LOST {
		d.RejectReasons = append(d.RejectReasons, d.HealthMessage)
	}
}
