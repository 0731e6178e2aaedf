package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
)

// Sentence turns a name of the API into words.
func Sentence(name string) string { return strings.ReplaceAll(name, "_", " ") }

// YesNo is yes or no.
func YesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// ActiveCell reports whether a thing is in use.
func ActiveCell(active bool) output.Cell {
	if active {
		return output.Cell{Text: "active", Color: output.Green}
	}
	return output.Cell{Text: "inactive", Color: output.Yellow}
}

// HolderText names the holder of a grant.
func HolderText(domain, project *client.Ref, user *client.UserRef, other string) string {
	switch {
	case domain != nil:
		return "domain " + domain.Name
	case project != nil:
		return "project " + project.Name
	case user != nil:
		return "user " + user.Email
	}
	return other
}

// PoliciesText lists the policies that bind a holder.
func PoliciesText(list []client.Attachment) string {
	var all []string
	for _, at := range list {
		all = append(all, at.Policy.Name+Narrowing(at.ResourceGroup, at.WithinProject))
	}
	return strings.Join(all, ", ")
}

// Narrowing names the project and the resource group that something is limited to.
func Narrowing(group, within *client.Ref) (text string) {
	if within != nil {
		text += " within " + within.Name
	}
	if group != nil {
		text += " on " + group.Name
	}
	return text
}

// Names lists the names of references.
func Names(refs []client.Ref) string {
	all := make([]string, len(refs))
	for i, r := range refs {
		all[i] = r.Name
	}
	return strings.Join(all, ", ")
}

// Amount shows a number that may be unknown.
func Amount(n *int64, show func(int64) string) string {
	if n == nil {
		return "-"
	}
	return show(*n)
}

// Decimal is a number in digits.
func Decimal(n int64) string { return strconv.FormatInt(n, 10) }

// First is the first argument, or empty without arguments.
func First(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// OrNone is a text, or empty without one.
func OrNone(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// Sheet is a list of names and values; empty values are left out.
type Sheet struct {
	W io.Writer
}

// Sheet returns a sheet that writes to the output.
func (a *App) Sheet() Sheet { return Sheet{a.Out} }

// Fact writes one line, unless the value is empty.
func (s Sheet) Fact(name, value string) {
	if value != "" {
		fmt.Fprintf(s.W, "%-12s %s\n", name+":", output.Clean(value))
	}
}

// Gap writes an empty line.
func (s Sheet) Gap() { fmt.Fprintln(s.W) }

// Plural returns a number with a noun.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
