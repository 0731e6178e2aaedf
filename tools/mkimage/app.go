package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
)

// appsLabel is the label that lists the apps of an image; docs/images.md describes it.
const appsLabel = "com.berthhq.apps"

// App is a program of the image that serves a web page on a port.
type App struct {
	Name        string            `yaml:"name" json:"name"`
	Title       string            `yaml:"title" json:"title,omitempty"`
	Port        int               `yaml:"port" json:"port"`
	Command     []string          `yaml:"command" json:"command,omitempty"`
	Environment map[string]string `yaml:"environment" json:"environment,omitempty"`
}

var appName = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,22}[a-z0-9])?$`)

func (a App) check() error {
	if !appName.MatchString(a.Name) {
		return errors.New("a name has 1 to 24 lower-case letters, digits and hyphens, and begins with a letter")
	}
	if a.Port < 1 || a.Port > 65535 {
		return fmt.Errorf("port %d is not between 1 and 65535", a.Port)
	}
	return nil
}

// labels returns the labels of the image.
func (r Recipe) labels() (map[string]string, error) {
	l := map[string]string{
		"org.opencontainers.image.title":       r.Title,
		"org.opencontainers.image.description": r.Description,
		"org.opencontainers.image.version":     r.Tag,
	}
	if len(r.Apps) > 0 {
		b, err := json.Marshal(r.Apps)
		if err != nil {
			return nil, fmt.Errorf("label %s: %w", appsLabel, err)
		}
		l[appsLabel] = string(b)
	}
	return l, nil
}
