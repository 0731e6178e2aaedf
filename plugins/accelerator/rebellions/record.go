package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// record is an RSD group that the plugin created. It is written before the group is created and
// removed after it was destroyed, so that no group is leaked.
type record struct {
	Allocation string   `json:"allocation"`
	Group      string   `json:"group"`
	NPUs       []string `json:"npus"` // sorted addresses, because indexes change
}

func (m *machine) records() ([]record, error) {
	raw, err := os.ReadFile(m.State("groups.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []record
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("groups.json: %w", err)
	}
	return all, nil
}

// save writes the records. Without records it removes the file.
func (m *machine) save(all []record) error {
	path := m.State("groups.json")
	if len(all) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", raw, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func without(all []record, allocation string) []record {
	return slices.DeleteFunc(slices.Clone(all), func(r record) bool { return r.Allocation == allocation })
}

func of(all []record, allocation string) *record {
	for i := range all {
		if all[i].Allocation == allocation {
			return &all[i]
		}
	}
	return nil
}
