package app

import (
	"cmp"
	"net/url"
	"path"
	"strings"

	"github.com/berthhq/berth/internal/problem"
)

// home is where programs start in a container.
const home = "/home/work"

// pathOf returns the path and query at which an app is opened: the requested one, or the one that
// shows the requested folder. A folder that the app cannot show is ignored.
func (s *Service) pathOf(t Target, in OpenAppInput) (string, error) {
	switch {
	case in.Path != nil && in.Folder != nil:
		return "", problem.Invalid("folder", "cannot be given together with path")
	case in.Path != nil:
		return *in.Path, nil
	case in.Folder == nil:
		return "/", nil
	case !strings.HasPrefix(*in.Folder, "/"):
		return "", problem.Invalid("folder", "must be an absolute path in the container, such as %s/data", home)
	}
	if e := s.known(t.App); e != nil && e.Folder != "" {
		return e.show(path.Clean(*in.Folder)), nil
	}
	return "/", nil
}

// show returns the path and query at which the program shows a folder of the container.
func (e entry) show(folder string) string {
	escaped := (&url.URL{Path: folder}).EscapedPath()
	if strings.Contains(e.Folder, "?") {
		escaped = url.QueryEscape(folder)
	}
	below, inside := strings.CutPrefix(escaped+"/", home+"/")
	if !inside && strings.Contains(e.Folder, "{below}") {
		return "/"
	}
	return strings.NewReplacer("{folder}", escaped, "{below}", strings.TrimSuffix(below, "/")).Replace(e.Folder)
}

// ImageApp is an app that the labels of an image describe.
type ImageApp struct{ Name, Title string }

// OfImage returns the apps that the labels of an image describe, without those that nothing can start.
func (s *Service) OfImage(image map[string]string) []*ImageApp {
	out := []*ImageApp{}
	for _, d := range s.labelled(image) {
		if d.Startable() {
			out = append(out, &ImageApp{Name: d.Name, Title: cmp.Or(d.Title, d.Name)})
		}
	}
	return out
}
