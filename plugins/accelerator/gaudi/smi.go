package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// timeout limits one run, which takes half a second for eight devices.
const timeout = 2 * time.Second

var (
	query    = []string{"bus_id", "memory.total", "memory.used", "power.draw", "power.max", "temperature.aip", "utilization.aip"}
	errNoRow = errors.New("hl-smi does not list it")
)

// errorQuery is a separate query: versions of hl-smi that do not support its fields would fail the
// whole query.
var errorQuery = []string{"bus_id", "ecc.errors.uncorrected.volatile.total", "ecc.errors.corrected.volatile.total"}

// reading is the output of hl-smi for a device, by field.
type reading map[string]string

// number parses a value such as "131072 MiB" and converts it to the unit of metrics.
func (r reading) number(name string) (float64, error) {
	if r == nil {
		return 0, errNoRow
	}
	n, err := driver.Quantity(driver.Scalar(r[name]))
	if err != nil {
		return 0, fmt.Errorf("hl-smi, %s: %w", name, err)
	}
	return n, nil
}

// smi runs hl-smi and returns its output by address.
func (m *machine) smi(ctx context.Context, query []string) (map[string]reading, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	raw, err := m.host.Ask(ctx, "hl-smi", "-Q", strings.Join(query, ","), "--format=csv,noheader")
	if err != nil {
		return nil, err
	}
	table := csv.NewReader(strings.NewReader(string(raw)))
	table.FieldsPerRecord, table.TrimLeadingSpace, table.LazyQuotes = -1, true, true
	lines, err := table.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("hl-smi does not print a table: %s", driver.Clean(err.Error(), 100))
	}
	rows := map[string]reading{}
	for _, line := range lines {
		if len(line) != len(query) {
			continue
		}
		row := reading{}
		for i, name := range query {
			row[name] = strings.TrimSpace(line[i])
		}
		rows[strings.ToLower(row["bus_id"])] = row
	}
	if len(rows) == 0 {
		return nil, errors.New("hl-smi does not print a table")
	}
	return rows, nil
}
