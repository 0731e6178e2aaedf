package resource

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		slot, text string
		want       int64
		fails      bool
	}{
		"whole cpu":            {slot: "cpu", text: "2", want: 2000},
		"part of a cpu":        {slot: "cpu", text: "0.5", want: 500},
		"share":                {slot: "cuda.shares", text: "0.25", want: 250},
		"too fine a share":     {slot: "cuda.shares", text: "0.0000001", fails: true},
		"bytes":                {slot: "mem", text: "1024", want: 1024},
		"bytes with suffix":    {slot: "mem", text: "4g", want: 4 << 30},
		"bytes, iec suffix":    {slot: "mem", text: "1.5GiB", want: 3 << 29},
		"device memory":        {slot: "cuda.mem", text: "512m", want: 512 << 20},
		"fraction of a device": {slot: "cuda.device", text: "0.5", fails: true},
		"devices":              {slot: "cuda.device", text: "2.0", want: 2},
		"negative":             {slot: "cpu", text: "-1", want: -1000},
		"exponent":             {slot: "cpu", text: "1e400", fails: true},
		"not a number":         {slot: "cpu", text: "NaN", fails: true},
		"hex":                  {slot: "mem", text: "0x10", fails: true},
		"quotient":             {slot: "cpu", text: "1/3", fails: true},
		"empty":                {slot: "cpu", text: "", fails: true},
		"suffix on a count":    {slot: "cuda.device", text: "4g", fails: true},
		"beyond the largest":   {slot: "mem", text: "99999999999p", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(c.slot, c.text)
			if (err != nil) != c.fails {
				t.Fatalf("Parse(%q, %q) error = %v, want failure %v", c.slot, c.text, err, c.fails)
			}
			if err == nil && got != c.want {
				t.Errorf("Parse(%q, %q) = %d, want %d", c.slot, c.text, got, c.want)
			}
		})
	}
}

func TestFormatIsInverse(t *testing.T) {
	for _, slot := range []string{"cpu", "mem", "cuda.shares", "cuda.device"} {
		for _, n := range []int64{0, 1, 10, 999, 1000, 1001, 123456789, MaxAmount, -5} {
			got, err := Parse(slot, Format(slot, n))
			if err != nil || got != n {
				t.Errorf("%s: %d printed as %q is read as %d, %v", slot, n, Format(slot, n), got, err)
			}
		}
	}
}

func TestSlotsJSON(t *testing.T) {
	var s Slots
	if err := json.Unmarshal([]byte(`{"cpu":"0.5","mem":"1g","cuda.device":2}`), &s); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Slots{"cpu": 500, "mem": 1 << 30, "cuda.device": 2}, s); diff != "" {
		t.Error(diff)
	}
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"cpu":"0.5","cuda.device":"2","mem":"1073741824"}`; string(b) != want {
		t.Errorf("got %s, want %s", b, want)
	}
	if err := json.Unmarshal([]byte(`{"../x":"1","cpu":"lots"}`), &s); err == nil {
		t.Error("bad names and amounts were accepted")
	}
}
