package main

import (
	"strings"
	"time"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
)

// sentence is a name of the API in people's words.
func sentence(name string) string { return strings.ReplaceAll(name, "_", " ") }

// clock is when something was, to the second.
func clock(at time.Time) string { return at.Local().Format("2006-01-02 15:04:05") }

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// activity reports whether a thing is in use.
func activity(active bool) output.Cell {
	if active {
		return output.Cell{Text: "active", Color: output.Green}
	}
	return output.Cell{Text: "inactive", Color: output.Yellow}
}

// holderText names what something is granted to.
func holderText(domain, project *client.Ref, user *client.UserRef, other string) string {
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

// policiesText lists the policies that bind a holder.
func policiesText(list []client.Attachment) string {
	var all []string
	for _, at := range list {
		all = append(all, at.Policy.Name+narrowing(at.ResourceGroup, at.WithinProject))
	}
	return strings.Join(all, ", ")
}

func narrowing(group, within *client.Ref) (text string) {
	if within != nil {
		text += " within " + within.Name
	}
	if group != nil {
		text += " on " + group.Name
	}
	return text
}
