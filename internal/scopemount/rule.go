// Package scopemount mounts the scopes of a volume whose scopes are separate file systems, below
// the volume's directory. Storage proxies and agents mount a scope before a folder is used, and
// unmount it when it has not been used for a while. Only mounts that match the operator's rule are
// allowed, whatever a product requests.
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

// Rule is what an operator permits to be mounted for a scope, with the options. It is the same for
// all scopes except for the Placeholder.
type Rule Spec

// forced are the options of every mount, because users control the contents of folders.
var forced = []string{"nosuid", "nodev"}

var (
	typeForm   = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,31}$`)
	optionForm = regexp.MustCompile(`^[a-z_][A-Za-z0-9_.:/=@+{}-]*$`)
	scopeForm  = regexp.MustCompile(`^[0-9a-f]{32}$`)
)

// never are options that undo forced ones, or that mount something other than a file system of the
// type.
var never = []string{"suid", "dev", "bind", "rbind", "move", "remount", "user", "users", "owner", "group", "helper"}

// ParseRule reads TYPE,SOURCE,OPTION,..., as on a command line.
func ParseRule(text string) (Rule, error) {
	part := strings.Split(text, ",")
	if len(part) < 2 {
		return Rule{}, fmt.Errorf("%q: want TYPE,SOURCE[,OPTION...]: %w", text, errdefs.ErrInvalidArgument)
	}
	r := Rule{Type: part[0], Source: part[1], Options: part[2:]}
	return r, r.Check()
}

// Check returns an error for an invalid rule.
func (r Rule) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf(format+": %w", append(args, errdefs.ErrInvalidArgument)...)
	}
	switch {
	case !typeForm.MatchString(r.Type):
		return bad("type %.80q is not the type of a file system", r.Type)
	case r.Source == "" || strings.HasPrefix(r.Source, "-") || strings.ContainsFunc(r.Source, func(c rune) bool { return c <= ' ' || c == ',' || c == 0x7f }):
		return bad("source %.200q must be the mounted source, such as server:/exports/%s", r.Source, Placeholder)
	case !strings.Contains(r.Source+strings.Join(r.Options, ","), Placeholder):
		return bad("source %.200q and the options do not contain %s, so all scopes would be the same", r.Source, Placeholder)
	}
	for _, o := range r.Options {
		name, _, _ := strings.Cut(o, "=")
		if !optionForm.MatchString(o) || slices.Contains(never, name) || strings.HasPrefix(name, "x-") {
			return bad("option %.80q is not allowed for the mount of a scope", o)
		}
	}
	return nil
}

// of returns the Spec of a scope.
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

// allows compares the mount that a product requests with the operator's rule: it must be the same,
// and every option that the product needs must be in the rule.
func (s Spec) allows(plan Spec) error {
	refuse := func(what, got, want string) error {
		return fmt.Errorf("the product requests a mount of %s %.200q, and only %.200q is allowed: %w", what, got, want, errdefs.ErrFailedPrecondition)
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

// source returns a source in the kernel's spelling, without redundant parts.
func source(s string) string {
	if server, export, ok := strings.Cut(s, ":/"); ok {
		return server + ":" + path.Clean("/"+export)
	}
	return s
}
