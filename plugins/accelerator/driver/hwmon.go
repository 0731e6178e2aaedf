package driver

import (
	"io/fs"
	"path/filepath"
)

// sensors are the divisors of the kernel's units: thousandths of degrees, millionths of watts.
var sensors = map[string]float64{"temp": 1000, "power": 1_000_000}

// Sensor reads the first temperature ("temp", in celsius) or power ("power", in watt) from the
// kernel's hwmon directory of a device, and its limit: the critical one, else the maximum, or 0 if
// there is none.
func Sensor(dir, kind string) (value, limit float64, err error) {
	err = fs.ErrNotExist
	for _, name := range Names(dir, "hwmon") {
		at := filepath.Join(dir, "hwmon", name, kind+"1")
		for _, input := range []string{"_input", "_average"} {
			if Exists(at + input) {
				value, err = Float(at + input)
				for _, most := range []string{"_max", "_crit"} {
					if top, err := Float(at + most); err == nil && top > 0 {
						limit = top / sensors[kind]
					}
				}
				return value / sensors[kind], limit, err
			}
		}
	}
	return 0, 0, err
}
