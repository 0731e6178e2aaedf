package image

import (
	"strings"
	"testing"
)

func TestImagesShowTheirMinimum(t *testing.T) {
	f := newServer(t)
	f.Data("Images", `{"images":{"edges":[{"node":{"id":"i-1","reference":"hub.example.org/tool:1","name":"tool:1","architecture":"amd64","sizeBytes":1024,"labels":{},
		"minimumSlots":{"cpu":"2","mem":"4294967296"},"status":"GONE","registry":null}}],"pageInfo":{"hasNextPage":false}}}`)
	if r := f.Run("image", "ls"); r.Code != 0 || !strings.Contains(r.Out, "MINIMUM") || !strings.Contains(r.Out, "4 GiB") {
		t.Errorf("%+v", r)
	}
}
