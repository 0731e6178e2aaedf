package app

import (
	_ "embed" // the catalogue
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/berthhq/berth/internal/appstate"
)

//go:embed catalogue.yaml
var catalogueText []byte

// entry is a known program.
type entry struct {
	Name        string            `yaml:"name"`
	Title       string            `yaml:"title"`
	Port        int               `yaml:"port"`
	Needs       []string          `yaml:"needs"` // programs; default: the first word of the command
	Command     []string          `yaml:"command"`
	Environment map[string]string `yaml:"environment"`
	Folder      string            `yaml:"folder"` // path and query that shows a folder
}

func loadCatalogue(text []byte) ([]entry, error) {
	var list []entry
	if err := yaml.UnmarshalWithOptions(text, &list, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("catalogue of apps: %w", err)
	}
	for i, e := range list {
		if err := appstate.CheckName(e.Name); err != nil || e.Port < 1 || e.Port > 65535 || len(e.Command) == 0 || e.Title == "" {
			return nil, fmt.Errorf("catalogue of apps: entry %d (%s) is incomplete: %w", i, e.Name, err)
		}
		if len(e.Needs) == 0 {
			list[i].Needs = e.Command[:1]
		}
	}
	return list, nil
}

func (e entry) definition() Definition {
	return Definition{App: appstate.App{Name: e.Name, Title: e.Title, Port: e.Port, Command: e.Command, Environment: e.Environment}, Source: SourceCatalogue}
}

// programs returns all programs that the catalogue looks for in an image.
func (s *Service) programs() []string {
	var list []string
	for _, e := range s.catalogue {
		list = append(list, e.Needs...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Labels of images that describe apps.
const (
	labelApps   = "com.berthhq.apps"         // a JSON list of objects with name, title, port, command, environment
	labelBAI    = "ai.backend.service-ports" // NAME:PROTOCOL:PORT, separated by commas
	maxLabelled = 32
)

// labelled returns the apps that the labels of an image describe. Images are not trusted, so
// invalid entries are skipped.
func (s *Service) labelled(image map[string]string) []Definition {
	var out []Definition
	add := func(a appstate.App) {
		if appstate.CheckName(a.Name) != nil || a.Port < 1 || a.Port > 65535 || len(out) == maxLabelled {
			return
		}
		if i := slices.IndexFunc(s.catalogue, func(e entry) bool { return e.Name == a.Name }); i >= 0 {
			e := s.catalogue[i]
			if a.Title == "" {
				a.Title = e.Title
			}
			if len(a.Command) == 0 {
				a.Command, a.Environment = e.Command, e.Environment
			}
		}
		out = append(out, Definition{App: a, Source: SourceImage})
	}
	var own []appstate.App
	if json.Unmarshal([]byte(image[labelApps]), &own) == nil {
		for _, a := range own {
			add(a)
		}
	}
	for part := range strings.SplitSeq(image[labelBAI], ",") {
		f := strings.Split(strings.TrimSpace(part), ":")
		if len(f) != 3 || f[1] != "http" && f[1] != "h2" && f[1] != "preopen" {
			continue
		}
		if port, err := strconv.Atoi(f[2]); err == nil {
			add(appstate.App{Name: strings.ToLower(f[0]), Port: port})
		}
	}
	return out
}

// spec returns how to start an app below a prefix.
func (d Definition) spec(prefix string) appstate.Spec {
	r := strings.NewReplacer("{port}", strconv.Itoa(d.Port), "{prefix}", prefix, "{path}", strings.TrimSuffix(prefix, "/"))
	out := appstate.Spec{Name: d.Name, Environment: map[string]string{
		"BERTH_APP_NAME": d.Name, "BERTH_APP_PORT": strconv.Itoa(d.Port), "APP_BASE_PATH": prefix,
	}}
	for _, arg := range d.Command {
		out.Command = append(out.Command, r.Replace(arg))
	}
	env := maps.Clone(d.Environment)
	for k, v := range env {
		out.Environment[k] = r.Replace(v)
	}
	return out
}

// KnowsPrefix reports whether the app receives the path below which it appears. Others get requests
// without it, and the header X-Forwarded-Prefix.
func (d Definition) KnowsPrefix() bool {
	knows := func(s string) bool { return strings.Contains(s, "{prefix}") || strings.Contains(s, "{path}") }
	return slices.ContainsFunc(d.Command, knows) || slices.ContainsFunc(slices.Collect(maps.Values(d.Environment)), knows)
}
