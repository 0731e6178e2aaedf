package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// everybodys is the default group, which contains the NPUs that are in no other.
const everybodys = "0"

// members returns the sorted addresses of a group's NPUs.
func (r *report) members(group string) []string {
	var out []string
	for i := range r.NPUs {
		if r.NPUs[i].group() == group {
			out = append(out, string(r.NPUs[i].PCI.Bus))
		}
	}
	slices.Sort(out)
	return out
}

// join creates an RSD group for an allocation and returns the report of rbln-smi after that:
// grouping changes the indexes of NPUs. A repeated call finds the group of the first one.
func (m *machine) join(ctx context.Context, allocation string, npus []string) (r *report, mine record, err error) {
	if m.State() == "" {
		return nil, mine, status.Error(codes.FailedPrecondition, "roots.state: must be set; RSD groups are recorded there")
	}
	npus = slices.Clone(npus)
	slices.Sort(npus)
	err = m.locked(ctx, func() error {
		all, err := m.records()
		if err != nil {
			return err
		}
		if r, err = m.groups(ctx); err != nil {
			return err
		}
		if was := of(all, allocation); was != nil {
			if slices.Equal(was.NPUs, npus) && slices.Equal(r.members(was.Group), npus) {
				mine = *was
				return nil
			}
			if r, err = m.dissolve(ctx, r, *was); err != nil { // left by an interrupted Prepare
				return err
			}
			all = without(all, allocation)
		}
		if r, err = m.clear(ctx, r, all, npus); err != nil {
			return err
		}
		mine = record{Allocation: allocation, Group: free(r, all), NPUs: npus}
		if err := m.save(append(all, mine)); err != nil {
			return err
		}
		r, err = m.create(ctx, r, mine)
		return err
	})
	return r, mine, err
}

// clear makes NPUs available. It returns an error if another allocation's group has one of them. A
// group that Berth did not create, such as the driver's default ones, is destroyed if all of its
// NPUs are requested and no process uses them.
func (m *machine) clear(ctx context.Context, r *report, all []record, npus []string) (*report, error) {
	for _, bus := range npus {
		n := r.at(bus)
		if n == nil {
			return r, status.Errorf(codes.FailedPrecondition, "the NPU at %s was removed", bus)
		}
		group := n.group()
		if group == everybodys {
			continue
		}
		members := r.members(group)
		for _, other := range all {
			if other.Group == group && slices.Contains(other.NPUs, bus) {
				return r, status.Errorf(codes.ResourceExhausted, "the NPU at %s is in RSD group %s of allocation %s", bus, group, other.Allocation)
			}
		}
		for _, member := range members {
			if !slices.Contains(npus, member) {
				return r, status.Errorf(codes.ResourceExhausted, "the NPU at %s is in RSD group %s, which Berth did not create, together with %s", bus, group, member)
			}
			if r.busy(member) {
				return r, status.Errorf(codes.ResourceExhausted, "a program runs on the NPU at %s, in RSD group %s, which Berth did not create", member, group)
			}
		}
		var err error
		if r, err = m.dissolve(ctx, r, record{Group: group, NPUs: members}); err != nil {
			return r, err
		}
	}
	return r, nil
}

// busy reports whether a process uses an NPU.
func (r *report) busy(bus string) bool {
	n := r.at(bus)
	return n != nil && slices.ContainsFunc(r.Contexts, func(c contextOf) bool { return c.NPU == n.Index })
}

// free returns the smallest group number that neither a group nor a record has.
func free(r *report, all []record) string {
	for i := 1; ; i++ {
		id := strconv.Itoa(i)
		if len(r.members(id)) == 0 && !slices.ContainsFunc(all, func(x record) bool { return x.Group == id }) {
			return id
		}
	}
}

// create creates a group and verifies it.
func (m *machine) create(ctx context.Context, r *report, g record) (*report, error) {
	var indexes []string
	for _, bus := range g.NPUs {
		indexes = append(indexes, string(r.at(bus).Index))
	}
	if err := m.regroup(ctx, "-c", g.Group, "-a", strings.Join(indexes, ",")); err != nil {
		return r, fmt.Errorf("create RSD group %s of %s: %w", g.Group, strings.Join(g.NPUs, ", "), err)
	}
	r, err := m.groups(ctx)
	if err != nil {
		return r, err
	}
	if got := r.members(g.Group); !slices.Equal(got, g.NPUs) {
		_ = m.regroup(ctx, "-d", g.Group) // the group is Berth's, with the wrong members
		return r, fmt.Errorf("RSD group %s has %s instead of %s", g.Group, strings.Join(got, ", "), strings.Join(g.NPUs, ", "))
	}
	return r, nil
}

// dissolve destroys a group if it still has the recorded NPUs: its number may have been reused.
func (m *machine) dissolve(ctx context.Context, r *report, g record) (*report, error) {
	if got := r.members(g.Group); len(got) == 0 || !slices.Equal(got, g.NPUs) {
		return r, nil
	}
	if err := m.regroup(ctx, "-d", g.Group); err != nil {
		return r, fmt.Errorf("destroy RSD group %s: %w", g.Group, err)
	}
	return m.groups(ctx)
}
