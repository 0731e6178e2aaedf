package driver_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// An impossible value is not reported as a measurement and is never adjusted.
func TestNonsenseIsNotMeasured(t *testing.T) {
	for _, row := range []struct {
		unit            string
		value, capacity float64
		err             error
		want            string
	}{
		{"bytes", 5, 8, nil, "5 of 8 MEASURED"},
		{"bytes", 0, 8, nil, "0 of 8 MEASURED"},
		{"bytes", 9, 8, nil, "0 of 0 UNAVAILABLE"},
		{"bytes", 9, 0, nil, "9 of 0 MEASURED"},
		{"percent", 100, 100, nil, "100 of 100 MEASURED"},
		{"percent", 250, 100, nil, "0 of 0 UNAVAILABLE"},
		{"percent", -1, 100, nil, "0 of 0 UNAVAILABLE"},
		{"watt", 310, 300, nil, "310 of 310 MEASURED"}, // for a moment
		{"watt", 226_000, 900, nil, "0 of 0 UNAVAILABLE"},
		{"watt", 0.0002, 0, nil, "0 of 0 UNAVAILABLE"},
		{"watt", 0, 300, nil, "0 of 300 MEASURED"},
		{"celsius", 44, 105, nil, "44 of 105 MEASURED"},
		{"celsius", 0.044, 0, nil, "0 of 0 UNAVAILABLE"},
		{"celsius", 0, 0, nil, "0 of 0 UNAVAILABLE"},
		{"celsius", 44_000, 105, nil, "0 of 0 UNAVAILABLE"},
		{"celsius", -7, 105, nil, "0 of 0 UNAVAILABLE"},
		{"mhz", 1.98e9, 0, nil, "0 of 0 UNAVAILABLE"},
		{"count", 3, 0, nil, "3 of 0 MEASURED"},
		{"bytes", math.NaN(), 8, nil, "0 of 0 UNAVAILABLE"},
		{"bytes", 5, math.Inf(1), nil, "5 of 0 MEASURED"},
		{"bytes", 5, 8, errors.New("no answer"), "0 of 0 UNAVAILABLE"},
	} {
		m := driver.Gauge("acme_x", "d", row.unit, row.value, row.capacity, row.err)
		if got := fmt.Sprint(m.GetValue(), " of ", m.GetCapacity(), " ", m.GetQuality()); got != row.want {
			t.Errorf("%v %s of %v: %s, want %s", row.value, row.unit, row.capacity, got, row.want)
		}
	}
}
