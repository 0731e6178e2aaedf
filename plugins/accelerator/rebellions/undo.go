package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// Undo implements driver.Undoer.
func (m *machine) Undo(ctx context.Context, allocation string, state []byte) error {
	if m.State() == "" {
		return nil
	}
	_, err := m.drop(ctx, func(all []record) []record {
		if r := of(all, allocation); r != nil {
			return []record{*r}
		}
		if r, ok := remembered(allocation, state); ok && !claimed(all, r) {
			return []record{r}
		}
		return nil
	})
	return err
}

// Sweep implements driver.Undoer. The agent's state of a live allocation replaces a record that was
// lost.
func (m *machine) Sweep(ctx context.Context, live []*pb.LiveAllocation) ([]string, error) {
	if m.State() == "" {
		return nil, nil
	}
	alive := map[string]bool{}
	for _, a := range live {
		alive[a.GetAllocationId()] = true
	}
	err := m.locked(ctx, func() error {
		all, err := m.records()
		if err != nil {
			return err
		}
		before := len(all)
		for _, a := range live {
			if r, ok := remembered(a.GetAllocationId(), a.GetState()); ok && of(all, r.Allocation) == nil && !claimed(all, r) {
				all = append(all, r)
			}
		}
		if len(all) == before {
			return nil
		}
		return m.save(all)
	})
	if err != nil {
		return nil, err
	}
	gone, err := m.drop(ctx, func(all []record) []record {
		return slices.DeleteFunc(slices.Clone(all), func(r record) bool { return alive[r.Allocation] })
	})
	var leaks []string
	for _, r := range gone {
		leaks = append(leaks, fmt.Sprintf("RSD group %s of allocation %s", r.Group, r.Allocation))
	}
	return leaks, err
}

// drop destroys the groups of the records that choose selects, and returns these records.
func (m *machine) drop(ctx context.Context, choose func([]record) []record) (gone []record, err error) {
	if all, err := m.records(); err == nil && len(choose(all)) == 0 {
		return nil, nil // the usual case needs neither lock nor program
	}
	err = m.locked(ctx, func() error {
		all, err := m.records()
		if err != nil {
			return err
		}
		chosen := choose(all)
		if len(chosen) == 0 {
			return nil
		}
		r, err := m.groups(ctx)
		if err != nil {
			return err
		}
		var failed []error
		for _, g := range chosen {
			after, err := m.dissolve(ctx, r, g)
			if err != nil {
				failed = append(failed, err)
				continue
			}
			r, all = after, without(all, g.Allocation)
			gone = append(gone, g)
		}
		return errors.Join(append(failed, m.save(all))...)
	})
	return gone, err
}

// remembered decodes the state that Edit returned to the agent.
func remembered(allocation string, state []byte) (record, bool) {
	var r record
	if len(state) == 0 || json.Unmarshal(state, &r) != nil || r.Group == "" || r.Group == everybodys || len(r.NPUs) == 0 {
		return r, false
	}
	r.Allocation = allocation
	return r, true
}

// claimed reports whether the group now belongs to another allocation.
func claimed(all []record, r record) bool {
	return slices.ContainsFunc(all, func(x record) bool { return x.Group == r.Group })
}
