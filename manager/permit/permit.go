// Package permit checks whether the viewer can do an operation, for the manager's services. The
// rules are in internal/access; this package converts them to errors with a class. Objects are
// read through ent first, so that an invisible object is not found rather than forbidden.
package permit

import (
	"context"

	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
)

// Writer returns the viewer if they can change anything at all.
func Writer(ctx context.Context) (*viewer.Viewer, error) {
	v := viewer.From(ctx)
	switch {
	case v == nil || v.IsAnonymous():
		return nil, problem.Unauthenticated("log in first")
	case v.Due == viewer.DuePassword:
		return nil, problem.Forbidden("change your password first").WithField("password")
	case v.Due == viewer.DueTOTP:
		return nil, problem.Forbidden("enrol a second factor first").WithField("totp")
	case v.Role == viewer.RoleMonitor:
		return nil, problem.Forbidden("a monitor may not change anything")
	}
	return v, nil
}

// Check returns the viewer if they can do op on an object, and a permission denied error
// otherwise.
func Check(ctx context.Context, op access.Operation, e access.Entity, on access.Object) (*viewer.Viewer, error) {
	v := viewer.From(ctx)
	if v == nil || v.Role != viewer.RoleMonitor || v.Due != "" || !v.May(op, e, on) {
		var err error
		if v, err = Writer(ctx); err != nil {
			return nil, err
		}
	}
	if need := access.Needs(op, e); v.Scopes != nil && !v.Allows(need) && !v.May(op, e, on) {
		return nil, problem.Forbidden("the access token lacks the scope %s", need)
	}
	if !v.May(op, e, on) {
		return nil, problem.Forbidden("you may not %s this %s", verb(op, e), name(e))
	}
	return v, nil
}

var verbs = map[access.Operation]string{
	access.Read: "read", access.Create: "create", access.Update: "change", access.Delete: "end or delete",
	access.Enter: "enter", access.ReadFiles: "read the files of", access.WriteFiles: "change the files of",
	access.Impersonate: "act as", access.ManageMembers: "choose the members of", access.Grant: "grant access to",
	access.Transfer: "use",
}

func verb(op access.Operation, e access.Entity) string {
	if op == access.Grant && e == access.Role {
		return "grant"
	}
	return verbs[op]
}

func name(e access.Entity) string {
	if e == access.Vfolder {
		return "folder"
	}
	out := []rune(e)
	for i, r := range out {
		if r == '_' {
			out[i] = ' '
		}
	}
	return string(out)
}
