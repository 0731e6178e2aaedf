package policy

import (
	"fmt"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/resourcepolicy"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
)

// Amounts are the numeric limits of a policy; nil means no limit.
type Amounts struct {
	MaxSessions             *int
	MaxPendingSessions      *int
	MaxContainersPerSession *int
	MaxPriority             *int
	MaxSessionLifetime      *int // seconds
	IdleTimeout             *int // seconds
	MaxPublicAppTime        *int // seconds; nil allows none
	MaxVfolders             *int
	MaxScopeBytes           *int64
	MaxDiskBytes            *int64 // of the writable layer of each container of a session
	MaxLogins               *int
	MaxCustomizedImages     *int   // images that a user has made of sessions
	MaxImageBytes           *int64 // that these images add to public ones
	MaxDeployments          *int   // that have not ended
}

// Limits of a container's writable layer.
const (
	DefaultDiskBytes = 20 << 30 // the default, and the maximum without a policy
	MinDiskBytes     = 64 << 20 // the minimum of a request, and of a policy
	DiskBytes        = "disk bytes"
)

// unlimited in an update removes a limit, because an absent value leaves it unchanged.
const unlimited = -1

// minIdleTimeout is the precision of idle checks, in seconds.
const minIdleTimeout = 60

// amount is one of Amounts.
type amount struct {
	column, field, what string
	n                   **int
	session             bool // about sessions, so that it can be restricted to a group or project
}

// list returns all amounts except the bytes, in the order of the page.
func (a *Amounts) list() []amount {
	return []amount{
		{resourcepolicy.FieldMaxSessions, "maxSessions", "sessions", &a.MaxSessions, true},
		{resourcepolicy.FieldMaxPendingSessions, "maxPendingSessions", "pending sessions", &a.MaxPendingSessions, true},
		{resourcepolicy.FieldMaxContainersPerSession, "maxContainersPerSession", "containers per session", &a.MaxContainersPerSession, true},
		{resourcepolicy.FieldMaxPriority, "maxPriority", "priority", &a.MaxPriority, true},
		{resourcepolicy.FieldMaxSessionLifetime, "maxSessionLifetime", "session lifetime", &a.MaxSessionLifetime, true},
		{resourcepolicy.FieldIdleTimeout, "idleTimeout", "idle timeout", &a.IdleTimeout, true},
		{resourcepolicy.FieldMaxPublicAppTime, "maxPublicAppTime", "public app time", &a.MaxPublicAppTime, true},
		{resourcepolicy.FieldMaxVfolders, "maxVfolders", "folders", &a.MaxVfolders, false},
		{resourcepolicy.FieldMaxLogins, "maxLogins", "logins", &a.MaxLogins, false},
		{resourcepolicy.FieldMaxCustomizedImages, "maxCustomizedImages", "own images", &a.MaxCustomizedImages, false},
		{resourcepolicy.FieldMaxDeployments, "maxDeployments", "deployments", &a.MaxDeployments, false},
	}
}

// write sets the amounts of a new or changed policy.
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
	if n := a.MaxImageBytes; n != nil {
		if err := put(m, resourcepolicy.FieldMaxImageBytes, *n, *n == unlimited); err != nil {
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

// checkAll checks that amounts are not below least, and that slots are valid.
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
	if n := a.MaxImageBytes; n != nil && *n < int64(least) {
		return below("maxImageBytes")
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
