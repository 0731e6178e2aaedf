package chatting

import (
	"encoding/json"
	"testing"

	"github.com/berthhq/berth/internal/conversation"
)

func TestAttachmentsOfPrompts(t *testing.T) {
	t.Parallel()
	image, text := conversation.Attachment{Name: "a.png", Type: "image/png", Size: 3}, conversation.Attachment{Name: `b".go`, Type: "text/plain", Size: 2}
	for _, c := range []struct {
		prompt string
		files  []conversation.Attachment
		data   string
		want   string
	}{
		{"hi", nil, "", `"hi"`},
		{"hi", []conversation.Attachment{text}, "go", `"hi\n\n\u003cfile name=\"b\\\".go\"\u003e\ngo\n\u003c/file\u003e"`},
		{"hi", []conversation.Attachment{image}, "png", `[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}}]`},
		{"", []conversation.Attachment{image}, "png", `[{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}}]`},
		{"", []conversation.Attachment{image, text}, "pnggo", `[{"type":"text","text":"\n\n\u003cfile name=\"b\\\".go\"\u003e\ngo\n\u003c/file\u003e"},{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}}]`},
	} {
		got, err := json.Marshal(content(c.prompt, c.files, []byte(c.data)))
		if err != nil || string(got) != c.want {
			t.Errorf("%q with %v: %s, want %s (%v)", c.prompt, c.files, got, c.want, err)
		}
	}
}
