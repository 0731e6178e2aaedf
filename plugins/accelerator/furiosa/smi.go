package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// smiTimeout is short enough that a sample still contains the drivers' values.
const smiTimeout = 1500 * time.Millisecond

// reading is the output of furiosa-smi for a card.
type reading struct {
	Name        driver.Scalar `json:"dev_name"`
	UUID        driver.Scalar `json:"device_uuid"`
	Temperature driver.Scalar `json:"temperature"`
	Power       driver.Scalar `json:"power"`
	Memory      struct {
		DRAM struct {
			Used driver.Scalar `json:"used_size"`
		} `json:"DRAM"`
	} `json:"memory"`
	Elements []json.RawMessage `json:"pe_utilizations"`
}

// busy returns the mean utilization of the elements, which are numbers or objects with a number.
func (r reading) busy() (float64, error) {
	if len(r.Elements) == 0 {
		return 0, errUnknown
	}
	sum := 0.0
	for _, raw := range r.Elements {
		var plain driver.Scalar
		var named struct {
			Usage       driver.Scalar `json:"pe_usage_percentage"`
			Utilization driver.Scalar `json:"utilization"`
		}
		if json.Unmarshal(raw, &plain) != nil {
			if err := json.Unmarshal(raw, &named); err != nil {
				return 0, err
			}
			if plain = named.Usage; plain == "" {
				plain = named.Utilization
			}
		}
		n, err := driver.Quantity(plain)
		if err != nil {
			return 0, err
		}
		if n > 100 {
			return 0, fmt.Errorf("utilization of %v %%", n)
		}
		sum += n
	}
	return sum / float64(len(r.Elements)), nil
}

// smi runs furiosa-smi and returns the merged output of its two reports, by card name. Older
// versions have another name for the format option.
func (m *machine) smi(ctx context.Context) (map[string]reading, error) {
	ctx, cancel := context.WithTimeout(ctx, smiTimeout)
	defer cancel()
	flag := "--format"
	out := map[string]reading{}
	for _, report := range []string{"info", "status"} {
		raw, err := m.Ask(ctx, "furiosa-smi", report, flag, "json")
		if err != nil && flag == "--format" && ctx.Err() == nil && !errors.Is(err, driver.ErrNoProgram) {
			flag = "--output"
			raw, err = m.Ask(ctx, "furiosa-smi", report, flag, "json")
		}
		if err != nil {
			return out, err
		}
		var all []json.RawMessage
		if err := json.Unmarshal(raw, &all); err != nil {
			return out, errors.New("furiosa-smi does not print the expected JSON: " + driver.Clean(err.Error(), 100))
		}
		for _, one := range all {
			var who reading
			if json.Unmarshal(one, &who) != nil {
				continue
			}
			merged := out[string(who.Name)]
			if json.Unmarshal(one, &merged) == nil { // values that this report lacks stay
				out[string(who.Name)] = merged
			}
		}
	}
	return out, nil
}
