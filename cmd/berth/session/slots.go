package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/internal/resource"
)

// slotFlags are the flags for the amounts of a session.
type slotFlags struct {
	cpu, mem, gpu string
	more          []string // slot=amount
}

// named reads the amounts that are given by slot name.
func (f slotFlags) named() (resource.Slots, error) {
	texts := map[string]string{}
	for _, r := range f.more {
		slot, amount, ok := strings.Cut(r, "=")
		if !ok {
			return nil, cli.Usagef("-r %s: write slot=amount, for example cuda.shares=0.5", r)
		}
		if _, twice := texts[slot]; twice {
			return nil, cli.Usagef("-r %s: the slot is given twice", r)
		}
		texts[slot] = amount
	}
	return parseSlots(texts)
}

// explicit reads all amounts except that of --gpu.
func (f slotFlags) explicit() (resource.Slots, error) {
	slots, err := f.named()
	if err != nil {
		return nil, err
	}
	rest := map[string]string{}
	for slot, amount := range map[string]string{resource.CPU: f.cpu, resource.Mem: f.mem} {
		if _, given := slots[slot]; !given {
			rest[slot] = amount
		}
	}
	more, err := parseSlots(rest)
	if err != nil {
		return nil, err
	}
	slots.Add(more)
	for _, slot := range slots.Names() {
		if slots[slot] <= 0 {
			return nil, cli.Usagef("slot %s: %s is not more than 0", slot, resource.Format(slot, slots[slot]))
		}
	}
	return slots, nil
}

func parseSlots(texts map[string]string) (resource.Slots, error) {
	slots, err := resource.ParseSlots(texts)
	if err != nil {
		return nil, cli.BadUsage(err)
	}
	return slots, nil
}

// slots returns all requested amounts. It asks the server which slot --gpu refers to.
func (f slotFlags) slots(ctx context.Context, c *client.Client) (resource.Slots, error) {
	slots, err := f.explicit()
	if err != nil || f.gpu == "" {
		return slots, err
	}
	types, err := c.SlotTypes(ctx)
	if err != nil {
		return nil, err
	}
	agents, err := c.Agents(ctx, "")
	if err != nil {
		return nil, err
	}
	offered := map[string]bool{}
	for _, a := range agents {
		for slot := range a.Capacity {
			offered[slot] = true
		}
	}
	slot, amount, err := acceleratorSlot(f.gpu, types, offered)
	if err != nil {
		return nil, err
	}
	if _, twice := slots[slot]; twice {
		return nil, cli.Usagef("--gpu and -r both ask for %s", slot)
	}
	slots[slot] = amount
	return slots, nil
}

// acceleratorSlot returns the slot that an amount of accelerators refers to: a fraction fits only
// shares; a whole number means whole devices where a vendor offers both. Slots of device memory and
// of partition profiles must be named. A slot that no agent offers at the moment counts only if
// there is no other.
func acceleratorSlot(amount string, types []client.SlotType, offered map[string]bool) (string, int64, error) {
	known := candidates(types, func(string) bool { return true })
	now := candidates(types, func(slot string) bool { return offered[slot] })
	if len(now) > 0 {
		known = now
	}
	byVendor := map[string]string{}
	amounts := map[string]int64{}
	var reason error
	for _, slot := range known {
		n, err := resource.Parse(slot, amount)
		if err != nil {
			reason = err
			continue
		}
		vendor, _, _ := strings.Cut(slot, ".")
		if before := byVendor[vendor]; before == "" || resource.KindOf(slot) == resource.Count {
			byVendor[vendor] = slot
		}
		amounts[slot] = n
	}
	var fits []string
	for _, slot := range byVendor {
		fits = append(fits, slot)
	}
	slices.Sort(fits)
	switch {
	case len(known) == 0:
		return "", 0, fmt.Errorf("--gpu %s: the cluster has no accelerators: %w", amount, errdefs.ErrInvalidArgument)
	case len(fits) == 0:
		return "", 0, fmt.Errorf("--gpu %s: none of %s takes that: %w (%w)", amount, strings.Join(known, ", "), reason, errdefs.ErrInvalidArgument)
	case len(fits) > 1:
		return "", 0, fmt.Errorf("--gpu %s could mean %s; choose one, for example -r %s=%s: %w",
			amount, strings.Join(fits, " or "), fits[0], amount, errdefs.ErrInvalidArgument)
	case amounts[fits[0]] <= 0:
		return "", 0, cli.Usagef("--gpu %s is not more than 0", amount)
	}
	return fits[0], amounts[fits[0]], nil
}

func candidates(types []client.SlotType, ok func(slot string) bool) []string {
	var all []string
	for _, t := range types {
		accelerator := t.Name != resource.CPU && resource.KindOf(t.Name) != resource.Bytes &&
			strings.Contains(t.Name, ".") && !strings.Contains(t.Name, ":")
		if accelerator && ok(t.Name) {
			all = append(all, t.Name)
		}
	}
	slices.Sort(all)
	return all
}

// parseMount reads folder[/subpath][:path[:ro|rw]]; the path may be left out
// before :ro.
func parseMount(text string) (client.MountInput, error) {
	parts := strings.Split(text, ":")
	m := client.MountInput{}
	m.Vfolder, m.Subpath, _ = strings.Cut(parts[0], "/")
	rest := parts[1:]
	if n := len(rest); n > 0 && (rest[n-1] == "ro" || rest[n-1] == "rw") {
		m.ReadOnly = rest[n-1] == "ro"
		rest = rest[:n-1]
	}
	if len(rest) > 0 {
		m.Target = rest[0]
	}
	switch {
	case m.Vfolder == "" || len(rest) > 1:
		return m, cli.Usagef("-v %s: write folder[/subpath][:path[:ro]]", text)
	case m.Target != "" && !strings.HasPrefix(m.Target, "/"):
		return m, cli.Usagef("-v %s: the path %q in the session must begin with /", text, m.Target)
	}
	return m, nil
}

// parseEnv reads K=V, or K for the value in the environment of this process.
func parseEnv(texts []string, env func(string) string) (map[string]string, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	all := map[string]string{}
	for _, t := range texts {
		key, value, ok := strings.Cut(t, "=")
		if key == "" {
			return nil, cli.Usagef("-e %s: write NAME=value", t)
		}
		if !ok {
			value = env(key)
		}
		all[key] = value
	}
	return all, nil
}
