// Package scopemount mounts the scopes of a volume of which each is a file system of its
// own, below the volume's directory: storage proxies and agents do so before a folder is
// used, and take the mount away when it has not been for a while. What may be mounted is
// what the operator has written, whatever a product says.
package scopemount

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
)

// Placeholder stands for a scope's name, 32 hexadecimal digits, in a Rule.
const Placeholder = "{scope}"

// Spec is a file system to mount, as mount(8) takes it.
type Spec struct {
	Type, Source string
	Options      []string
}

// Rule is what an operator allows to be mounted for a scope, and with which options: the
// same for all scopes but for the Placeholder.
type Rule Spec

// forced are the options of every mount: folders hold what people put there.
var forced = []string{"nosuid", "nodev"}

var (
	typeForm   = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,31}$`)
	optionForm = regexp.MustCompile(`^[a-z_][A-Za-z0-9_.:/=@+{}-]*$`)
	scopeForm  = regexp.MustCompile(`^[0-9a-f]{32}$`)
)

// never are options that undo what is forced, or that mount something else than a
// file system of the type.
var never = []string{"suid", "dev", "bind", "rbind", "move", "remount", "user", "users", "owner", "group", "helper"}

// ParseRule reads TYPE,SOURCE,OPTION,..., as it stands on a command line.
func ParseRule(text string) (Rule, error) {
	part := strings.Split(text, ",")
	if len(part) < 2 {
		return Rule{}, fmt.Errorf("%q: want TYPE,SOURCE[,OPTION...]: %w", text, errdefs.ErrInvalidArgument)
	}
	r := Rule{Type: part[0], Source: part[1], Options: part[2:]}
	return r, r.Check()
}

// Check refuses what is not a rule.
func (r Rule) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf(format+": %w", append(args, errdefs.ErrInvalidArgument)...)
	}
	switch {
	case !typeForm.MatchString(r.Type):
		return bad("type %.80q is none of a file system", r.Type)
	case r.Source == "" || strings.HasPrefix(r.Source, "-") || strings.ContainsFunc(r.Source, func(c rune) bool { return c <= ' ' || c == ',' || c == 0x7f }):
		return bad("source %.200q: want what is mounted, as server:/exports/%s", r.Source, Placeholder)
	case !strings.Contains(r.Source+strings.Join(r.Options, ","), Placeholder):
		return bad("source %.200q and options name no %s: all scopes would be one", r.Source, Placeholder)
	}
	for _, o := range r.Options {
		name, _, _ := strings.Cut(o, "=")
		if !optionForm.MatchString(o) || slices.Contains(never, name) || strings.HasPrefix(name, "x-") {
			return bad("option %.80q is not for the mount of a scope", o)
		}
	}
	return nil
}

// of is what is mounted for a scope.
func (r Rule) of(scope string) Spec {
	fill := func(s string) string { return strings.ReplaceAll(s, Placeholder, scope) }
	s := Spec{Type: r.Type, Source: fill(r.Source)}
	for _, o := range r.Options {
		s.Options = append(s.Options, fill(o))
	}
	for _, o := range forced {
		if !slices.Contains(s.Options, o) {
			s.Options = append(s.Options, o)
		}
	}
	return s
}

// allows compares what a product wants mounted with what the operator wrote: it must be
// that, and an option that it needs must be among theirs.
func (s Spec) allows(plan Spec) error {
	refuse := func(what, got, want string) error {
		return fmt.Errorf("the product has %s %.200q mounted, and allowed is %.200q: %w", what, got, want, errdefs.ErrFailedPrecondition)
	}
	if plan.Type != s.Type {
		return refuse("the type", plan.Type, s.Type)
	}
	if plan.Source != s.Source {
		return refuse("the source", plan.Source, s.Source)
	}
	for _, o := range plan.Options {
		if !slices.Contains(s.Options, o) {
			return refuse("the option", o, strings.Join(s.Options, ","))
		}
	}
	return nil
}

// source is how the kernel spells one: without what leads nowhere.
func source(s string) string {
	if server, export, ok := strings.Cut(s, ":/"); ok {
		return server + ":" + path.Clean("/"+export)
	}
	return s
}
