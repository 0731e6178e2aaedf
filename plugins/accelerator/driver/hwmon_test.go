package driver_test

import (
	"fmt"
	"testing"

	"github.com/berthhq/berth/plugins/accelerator/driver"
)

func TestSensor(t *testing.T) {
	for name, row := range map[string]struct {
		files map[string]string
		kind  string
		want  string
	}{
		"limit":        {map[string]string{"hwmon0/temp1_input": "45500", "hwmon0/temp1_max": "75000"}, "temp", "45.5 of 75"},
		"critical":     {map[string]string{"hwmon0/temp1_input": "1000", "hwmon0/temp1_max": "75000", "hwmon0/temp1_crit": "90000"}, "temp", "1 of 90"},
		"average":      {map[string]string{"hwmon3/power1_average": "81250000"}, "power", "81.25 of 0"},
		"another chip": {map[string]string{"hwmon0/name": "fan", "hwmon1/power1_input": "2000000"}, "power", "2 of 0"},
		"garbage":      {map[string]string{"hwmon0/temp1_input": "hot"}, "temp", "none"},
		"none":         {map[string]string{"hwmon0/name": "fan"}, "temp", "none"},
	} {
		files := map[string]string{}
		for file, text := range row.files {
			files["hwmon/"+file] = text
		}
		got := "none"
		if value, limit, err := driver.Sensor(tree(t, files), row.kind); err == nil {
			got = fmt.Sprint(value, " of ", limit)
		}
		if got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}
