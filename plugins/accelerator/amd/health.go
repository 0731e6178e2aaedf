package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// diagnose sets the health of a card from its memory errors and temperature.
func (m *machine) diagnose(d *pb.Device, c card) {
	ill := func(h pb.Health, format string, args ...any) {
		if d.Health = max(d.Health, h); d.HealthMessage == "" || h == pb.Health_HEALTH_UNHEALTHY {
			d.HealthMessage = fmt.Sprintf(format, args...)
		}
		if h == pb.Health_HEALTH_UNHEALTHY {
			driver.Reject(d, format, args...)
		}
	}
	if text, err := driver.Read(c.Dir, "ras/umc_err_count"); err == nil {
		n, reported := count(text, "ue")
		if !reported {
			d.Attributes["memory_errors"] = driver.NotReported
		}
		if n > 0 {
			ill(pb.Health_HEALTH_UNHEALTHY, "%d memory errors that could not be corrected", n)
		}
	}
	if now, limit, ok := heat(c.Dir); ok && limit > 0 && now >= limit {
		ill(pb.Health_HEALTH_DEGRADED, "%.0f °C is at or above the critical %.0f °C", now, limit)
	}
}

// count parses a line such as "ue: 3" and reports whether there is one.
func count(text, key string) (uint64, bool) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		if n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64); err == nil && strings.TrimSpace(name) == key {
			return n, true
		}
	}
	return 0, false
}

// sensors returns the directory of a card's sensors, or "".
func sensors(dir string) string {
	for _, name := range driver.Names(dir, "hwmon") {
		return filepath.Join(dir, "hwmon", name)
	}
	return ""
}

// heat returns the temperature of the chip's hottest spot, or else of its edge, and the critical
// temperature, in degrees.
func heat(dir string) (now, limit float64, ok bool) {
	at := sensors(dir)
	for _, place := range []string{"junction", "edge"} {
		for i := 1; at != "" && i <= 3; i++ {
			sensor := fmt.Sprintf("temp%d_", i)
			if driver.Text(at, sensor+"label") != place {
				continue
			}
			milli, err := driver.Float(at, sensor+"input")
			if err != nil {
				continue
			}
			crit, _ := driver.Float(at, sensor+"crit")
			return milli / 1000, crit / 1000, true
		}
	}
	return 0, 0, false
}
