package image

import (
	"fmt"
	"strings"
	"testing"
)

const detail = `{"image":{"id":"i-1","reference":"hub.example.org/tool:1","name":"tool:1","architecture":"amd64","digest":"sha256:1","sizeBytes":1024,"labels":{},
	"minimumSlots":{},"status":"ALIVE","registry":null,"autoPull":[{"id":"g-1","name":"gpu"}],"copies":[
		{"id":"c-1","agent":{"id":"a-1","name":"node-1"},"state":"PRESENT","doneBytes":2097152,"totalBytes":2097152,"usedAt":null},
		{"id":"c-2","agent":{"id":"a-2","name":"node-2"},"state":"PULLING","doneBytes":1048576,"totalBytes":4194304,"usedAt":null},
		{"id":"c-3","agent":{"id":"a-3","name":"node-3"},"state":"PARTIAL","doneBytes":3145728,"totalBytes":4194304,"message":"the registry does not answer","usedAt":null}]}}`

func TestDescribeShowsWhereAnImageIs(t *testing.T) {
	f := newServer(t)
	f.Data("ImageDetail", detail)
	r := f.Run("image", "describe", "tool:1")
	for _, text := range []string{"gpu", "node-1", "2 MiB", "node-2", "1 MiB of 4 MiB (25 %)", "partial", "3 MiB of 4 MiB (75 %)", "the registry does not answer"} {
		if r.Code != 0 || !strings.Contains(r.Out, text) {
			t.Errorf("%+v lacks %q", r, text)
		}
	}
}

func TestKeepNeedsAGroupOrNone(t *testing.T) {
	f := newServer(t)
	for _, args := range [][]string{{"image", "keep", "tool:1"}, {"image", "keep", "tool:1", "--none", "--group", "gpu"}} {
		if r := f.Run(args...); r.Code == 0 || !strings.Contains(fmt.Sprintf("%+v", r), "--none") {
			t.Errorf("%v: %+v", args, r)
		}
	}
}
