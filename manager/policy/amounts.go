package policy

import (
	"fmt"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/resourcepolicy"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
)

// Amounts are the limits of a policy that are plain numbers; nil means no limit.
type Amounts struct {
	MaxSessions             *int
	MaxPendingSessions      *int
	MaxContainersPerSession *int
	MaxPriority             *int
	MaxSessionLifetime      *int // seconds
	IdleTimeout             *int // seconds
	MaxVfolders             *int
	MaxScopeBytes           *int64
	MaxDiskBytes            *int64 // of each container of a session
	MaxLogins               *int
}

// What a container may write on its machine's disk.
const (
	DefaultDiskBytes = 20 << 30 // without being asked for, and at most without a policy
	MinDiskBytes     = 64 << 20 // of what is asked for, and of a policy
	DiskBytes        = "disk bytes"
)

// unlimited in an update takes a limit away, because an absent value keeps it.
const unlimited = -1

// minIdleTimeout is what idle checks can tell, in seconds.
const minIdleTimeout = 60

// amount is one of Amounts.
type amount struct {
	column, field, what string
	n                   **int
	session             bool // about sessions, so that it can be narrowed
}

// list has all amounts but the bytes, in the order in which they are shown.
func (a *Amounts) list() []amount {
	return []amount{
		{resourcepolicy.FieldMaxSessions, "maxSessions", "sessions", &a.MaxSessions, true},
		{resourcepolicy.FieldMaxPendingSessions, "maxPendingSessions", "pending sessions", &a.MaxPendingSessions, true},
		{resourcepolicy.FieldMaxContainersPerSession, "maxContainersPerSession", "containers per session", &a.MaxContainersPerSession, true},
		{resourcepolicy.FieldMaxPriority, "maxPriority", "priority", &a.MaxPriority, true},
		{resourcepolicy.FieldMaxSessionLifetime, "maxSessionLifetime", "session lifetime", &a.MaxSessionLifetime, true},
		{resourcepolicy.FieldIdleTimeout, "idleTimeout", "idle timeout", &a.IdleTimeout, true},
		{resourcepolicy.FieldMaxVfolders, "maxVfolders", "folders", &a.MaxVfolders, false},
		{resourcepolicy.FieldMaxLogins, "maxLogins", "logins", &a.MaxLogins, false},
	}
}

// write carries the amounts into a policy that is made or changed.
func (a *Amounts) write(m *ent.ResourcePolicyMutation) error {
	for _, one := range a.list() {
		if n := *one.n; n != nil {
			if err := put(m, one.column, *n, *n == unlimited); err != nil {
				return err
			}
		}
	}
	if n := a.MaxDiskBytes; n != nil {
		if err := put(m, resourcepolicy.FieldMaxDiskBytes, *n, *n == unlimited); err != nil {
			return err
		}
	}
	if n := a.MaxScopeBytes; n != nil {
		return put(m, resourcepolicy.FieldMaxScopeBytes, *n, *n == unlimited)
	}
	return nil
}

func put(m *ent.ResourcePolicyMutation, column string, value any, clear bool) error {
	if clear {
		return m.ClearField(column)
	}
	return m.SetField(column, value)
}

// checkAll refuses amounts below least and slots that are none.
func checkAll(total, pending resource.Slots, a Amounts, least int) error {
	if err := checkSlots("totalSlots", total); err != nil {
		return err
	}
	if err := checkSlots("maxPendingSlots", pending); err != nil {
		return err
	}
	below := func(field string) error {
		return problem.Invalid(field, "must be at least %d", least).WithLimit(fmt.Sprint(least))
	}
	for _, one := range a.list() {
		if n := *one.n; n != nil && *n < least {
			return below(one.field)
		}
	}
	if n := a.IdleTimeout; n != nil && *n != unlimited && *n < minIdleTimeout {
		return problem.Invalid("idleTimeout", "must be at least %d seconds", minIdleTimeout).WithLimit(fmt.Sprint(minIdleTimeout))
	}
	if n := a.MaxScopeBytes; n != nil && *n < int64(least) {
		return below("maxScopeBytes")
	}
	if n := a.MaxDiskBytes; n != nil && *n < MinDiskBytes && (*n != unlimited || least > unlimited) {
		return problem.Invalid("maxDiskBytes", "must be at least %d", MinDiskBytes).WithLimit(fmt.Sprint(MinDiskBytes))
	}
	return nil
}

func checkSlots(field string, slots resource.Slots) error {
	for _, name := range slots.Names() {
		if !resource.ValidName(name) {
			return problem.Invalid(field, "%q is not a slot name", name)
		}
		if n := slots[name]; n < 0 || n > resource.MaxAmount {
			return problem.Invalid(field+"."+name, "must not be negative").WithLimit("0")
		}
	}
	return nil
}
