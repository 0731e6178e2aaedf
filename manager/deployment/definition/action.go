package definition

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"strings"
)

var modeRule = regexp.MustCompile(`^[0-7]{3,4}$`)

// action reads an action before the start.
func action(at, kind string, args map[string]any) (Action, error) {
	a := Action{Kind: Kind(kind)}
	text := func(name string) string {
		if args[name] == nil {
			return ""
		}
		return fmt.Sprint(args[name])
	}
	switch a.Kind {
	case RunCommand:
		list, is := args["command"].([]any)
		if !is {
			return a, invalid(at+".args.command", "is not a list of texts")
		}
		var err error
		a.Command, err = texts(at+".args.command", list)
		return a, err
	case Log:
		a.Text = text("message")
		return a, nil
	case MakeDirectory:
		a.Path = text("path")
		return a, inside(at+".args.path", a.Path)
	case WriteFile:
		a.Path, a.Mode = text("filename"), cmp.Or(text("mode"), "644")
		a.Append, _ = args["append"].(bool)
		if lines, is := args["body"].([]any); is && len(lines) > 0 {
			list, err := texts(at+".args.body", lines)
			if err != nil {
				return a, err
			}
			a.Text = strings.Join(list, "\n")
		} else {
			a.Text = text("body")
		}
		if !modeRule.MatchString(a.Mode) {
			return a, invalid(at+".args.mode", "%q is not three or four octal digits", a.Mode)
		}
		return a, inside(at+".args.filename", a.Path)
	}
	return a, invalid(at+".action", "%q is not one of run_command, mkdir, write_file and log", kind)
}

// inside returns an error unless a path is absolute and has no dots.
func inside(at, p string) error {
	if !path.IsAbs(p) || path.Clean(p) != p || strings.ContainsRune(p, 0) {
		return invalid(at, "%q is not an absolute path without . and ..", p)
	}
	return nil
}
