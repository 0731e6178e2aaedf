package image

import (
	"strings"
	"testing"
)

func TestImagesShowTheirMinimum(t *testing.T) {
	f := newServer(t)
	f.Data("Images", `{"images":{"edges":[{"node":{"id":"i-1","reference":"hub.example.org/tool:1","name":"tool:1","architecture":"amd64","sizeBytes":1024,"labels":{},
		"minimumSlots":{"cpu":"2","mem":"4294967296"},"status":"GONE","registry":null}}],"pageInfo":{"hasNextPage":false}}}`)
	if r := f.Run("image", "ls", "--all"); r.Code != 0 || !strings.Contains(r.Out, "MINIMUM") || !strings.Contains(r.Out, "4 GiB") {
		t.Errorf("%+v", r)
	}
	if r := f.Run("image", "ls"); r.Code != 0 || strings.Contains(r.Out, "tool:1") {
		t.Errorf("an image that is gone is listed: %+v", r)
	}
}

func TestStartersShowHowTheyAreBuilt(t *testing.T) {
	f := newServer(t)
	f.Data("StarterImages", `{"starterImages":[{"name":"r","tag":"4.5","title":"R","description":"R and Shiny","command":"make images IMAGES=r","image":null},
		{"name":"python","tag":"3.11","title":"Python","description":"Python","command":"make images IMAGES=python","image":{"id":"i1","name":"python:3.11"}}]}`)
	r := f.Run("image", "starters")
	for _, line := range []string{"r:4.5        no          R and Shiny  make images IMAGES=r", "python:3.11  yes"} {
		if r.Code != 0 || !strings.Contains(r.Out, line) {
			t.Errorf("%+v lacks %q", r, line)
		}
	}
}
