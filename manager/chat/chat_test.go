package chat

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/conversation"
)

func TestSimilarity(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 10*maxWords)
	for _, c := range []struct {
		a, b string
		want float64
	}{
		{"", "", 1}, {"a", "", 0}, {"a b c", "a b c", 1}, {"a b c d", "a x c y", 0.5}, {"a b", "b a", 0.5}, {"a b c", "a  b\nc", 1}, {long, long + "more", 1},
	} {
		if got := similarity(c.a, c.b); got != c.want {
			t.Errorf("%.20q and %.20q: %g, want %g", c.a, c.b, got, c.want)
		}
	}
}

func TestAttachments(t *testing.T) {
	t.Parallel()
	data := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	png := "\x89PNG\r\n\x1a\n"
	for name, in := range map[string][]ChatAttachmentInput{
		"text that is not UTF-8": {{"a", "text/plain", data("\xff\xfe")}},
		"text with a zero byte":  {{"a", "text/plain", data("a\x00b")}},
		"another type":           {{"a", "text/html", data("x")}},
		"SVG":                    {{"a", "image/svg+xml", data("<svg/>")}},
		"an image of HTML":       {{"a", "image/png", data("<html>")}},
		"not Base64":             {{"a", "text/plain", "*"}},
		"a path as a name":       {{"../a", "text/plain", data("x")}},
		"no name":                {{"", "text/plain", data("x")}},
		"1 MiB of text and more": {{"a", "text/plain", data(strings.Repeat("x", maxTexts))}, {"b", "text/plain", data("x")}},
		"4 MiB of images":        {{"a", "image/png", data(png + strings.Repeat("x", maxImages))}},
		"8 MiB in one":           {{"a", "text/plain", strings.Repeat("A", base64.StdEncoding.EncodedLen(maxAttached)+4)}},
		"too many":               make([]ChatAttachmentInput, maxFiles+1),
	} {
		if _, _, err := attachments(in); !errdefs.IsInvalidArgument(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	list, content, err := attachments([]ChatAttachmentInput{{"a.png", "image/png", data(png)}, {"b.go", "text/plain", data("package b")}})
	if err != nil || len(list) != 2 || list[1].Size != 9 || string(content) != png+"package b" {
		t.Errorf("%+v %q %v", list, content, err)
	}
}

func TestParameters(t *testing.T) {
	t.Parallel()
	number := func(f float64) *float64 { return &f }
	for name, p := range map[string]conversation.Parameters{
		"temperature": {Temperature: number(2.1)}, "topP": {TopP: number(0)}, "maxTokens": {MaxTokens: new(int)}, "presencePenalty": {PresencePenalty: number(-3)},
		"stop": {Stop: []string{""}}, "schema": {Schema: "[]"}, "system": {System: strings.Repeat("x", maxSystem+1)},
	} {
		if _, err := parameters(&p); !errdefs.IsInvalidArgument(err) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := parameters(&conversation.Parameters{Temperature: number(0), TopP: number(1), Schema: `{"type":"object"}`, Stop: []string{"\n"}}); err != nil {
		t.Error(err)
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"", "http://api.example.com/v1", "https://", "https://user:secret@api.example.com", "https://api.example.com/v1?x=1", "https://api.example.com/#a",
		"file:///etc/passwd", "https:api.example.com", "https://" + strings.Repeat("a", maxURL),
	} {
		if err := checkURL(bad); !errdefs.IsInvalidArgument(err) {
			t.Errorf("%.60q: %v", bad, err)
		}
	}
	if err := checkURL("https://api.example.com:8443/v1"); err != nil {
		t.Error(err)
	}
}
