package chatting

import (
	"strings"
	"testing"

	"github.com/berthhq/berth/manager/chat/live"
)

// readAll reads a stream in parts of n bytes.
func readAll(stream string, n int) (live.Part, *reader) {
	var got live.Part
	r := &reader{part: func(p live.Part) { got.Text += p.Text; got.Reasoning += p.Reasoning }, comment: func(string) {}}
	for len(stream) > 0 {
		part := stream[:min(n, len(stream))]
		_, _ = r.Write([]byte(part))
		stream = stream[len(part):]
	}
	r.end()
	return got, r
}

func TestReasoning(t *testing.T) {
	t.Parallel()
	delta := func(list ...string) string {
		var b strings.Builder
		for _, s := range list {
			b.WriteString(`data: {"choices":[{"delta":` + s + `}]}` + "\r\n\r\n")
		}
		return b.String() + "data: [DONE]\n\n"
	}
	for name, c := range map[string]struct {
		stream string
		want   live.Part
	}{
		"text":               {delta(`{"role":"assistant","content":""}`, `{"content":"one"}`, `{"content":" two"}`), live.Part{Text: "one two"}},
		"reasoning_content":  {delta(`{"reasoning_content":"hm","content":null}`, `{"content":"yes"}`), live.Part{Text: "yes", Reasoning: "hm"}},
		"reasoning":          {delta(`{"reasoning":"hm"}`, `{"content":"yes"}`), live.Part{Text: "yes", Reasoning: "hm"}},
		"tags":               {delta(`{"content":"\n<th"}`, `{"content":"ink>a < b</thi"}`, `{"content":"nk>\n\nyes"}`), live.Part{Text: "yes", Reasoning: "a < b"}},
		"no end tag":         {delta(`{"content":"<think>a </th"}`), live.Part{Reasoning: "a </th"}},
		"tag in the text":    {delta(`{"content":"say <think>x</think>"}`), live.Part{Text: "say <think>x</think>"}},
		"beginning of a tag": {delta(`{"content":"<thi"}`), live.Part{Text: "<thi"}},
		"zero byte":          {delta(`{"content":"a\u0000b"}`), live.Part{Text: "ab"}},
		"emoji":              {delta(`{"content":"😀"}`, `{"content":"é"}`), live.Part{Text: "😀é"}},
	} {
		for _, n := range []int{1, 7, 1 << 20} {
			if got, r := readAll(c.stream, n); got != c.want || !r.done || r.failed != "" {
				t.Errorf("%s in parts of %d: %+v, want %+v (done %v, failed %q)", name, n, got, c.want, r.done, r.failed)
			}
		}
	}
}

func TestEndsOfStreams(t *testing.T) {
	t.Parallel()
	_, r := readAll(`data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":2}}}`+"\n\ndata: [DONE]\n", 5)
	if u := r.usage; u == nil || u.Prompt != 7 || u.Completion != 3 || u.Details.Cached != 2 {
		t.Errorf("usage %+v", u)
	}
	if _, r := readAll(`data: {"error":{"message":"out of\nmemory"}}`+"\n", 9); r.failed != "out of memory" || r.done {
		t.Errorf("failed %q, done %v", r.failed, r.done)
	}
	if got, r := readAll(`data: {"choices":[{"delta":{"content":"x"}}]}`+"\n", 9); got.Text != "x" || r.done {
		t.Errorf("a stream without its end: %+v, done %v", got, r.done)
	}
	if got, r := readAll(`data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}`+"\n\n", 9); got.Text != "x" || !r.done {
		t.Errorf("a stream that ends with a reason: %+v, done %v", got, r.done)
	}
	long := "data: " + strings.Repeat("x", maxLine+1) + "\n"
	if _, r := readAll(long, 1<<20); r.failed == "" || len(r.line) > maxLine {
		t.Error("a line that is too long was read")
	}
	if text := errorOf([]byte(`{"message":"` + strings.Repeat("y", 2*maxError) + `"}`)); len(text) > maxError+len("…") {
		t.Errorf("an error has %d bytes", len(text))
	}
}
