package chatting

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/berthhq/berth/manager/chat/live"
)

const (
	// maxLine limits a line of a stream, and maxError the text of an error, in bytes.
	maxLine  = 4 << 20
	maxError = 500
)

// usage is the number of tokens, as the engine counted them.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Details    *struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// message is a message of a model, or a part of one.
type message struct {
	Content          *string `json:"content"`
	ReasoningContent *string `json:"reasoning_content"`
	Reasoning        *string `json:"reasoning"`
}

// chunk is an event of a stream, or an answer that is not a stream.
type chunk struct {
	Choices []struct {
		Delta   message `json:"delta"`
		Message message `json:"message"`
		Finish  *string `json:"finish_reason"`
	} `json:"choices"`
	Usage *usage          `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// reader reads the answer of a model as it comes. It calls part with each part of the text, and comment with each comment.
type reader struct {
	part    func(live.Part)
	comment func(string)

	line   []byte
	long   bool // the line was longer than allowed
	think  thinking
	usage  *usage
	failed string // what an error event says
	done   bool   // the stream says that it is complete, as its end or as the reason why the model finished
}

// Write reads a part of a stream of server-sent events.
func (r *reader) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		if len(r.line)+len(line) > maxLine {
			r.line, r.long = nil, true
		}
		if !r.long {
			r.line = append(r.line, line...)
		}
		if whole {
			if r.long {
				r.failed = "the engine sent a line that is too long"
			}
			r.read(bytes.TrimSuffix(r.line, []byte("\r")))
			r.line, r.long = r.line[:0], false
		}
		b = rest
	}
	return n, nil
}

func (r *reader) read(line []byte) {
	if text, is := bytes.CutPrefix(line, []byte(":")); is {
		r.comment(strings.TrimSpace(string(text)))
		return
	}
	data, is := bytes.CutPrefix(line, []byte("data:"))
	if !is {
		return
	}
	if data = bytes.TrimSpace(data); string(data) == "[DONE]" {
		r.done = true
		return
	}
	r.object(data)
}

// object reads one JSON object, and reports whether it is one of a chat.
func (r *reader) object(data []byte) bool {
	var c chunk
	if json.Unmarshal(data, &c) != nil {
		return false
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		r.failed = errorOf(data)
		return true
	}
	if c.Usage != nil {
		r.usage = c.Usage
	}
	if len(c.Choices) == 0 {
		return c.Usage != nil
	}
	if f := c.Choices[0].Finish; f != nil && *f != "" {
		r.done = true
	}
	for _, m := range []message{c.Choices[0].Delta, c.Choices[0].Message} {
		p := live.Part{Reasoning: first(m.ReasoningContent, m.Reasoning)}
		if m.Content != nil {
			more := r.think.feed(*m.Content)
			p.Text, p.Reasoning = more.Text, p.Reasoning+more.Reasoning
		}
		if !p.Empty() {
			r.part(p)
		}
	}
	return true
}

// end passes on what is left of the text.
func (r *reader) end() {
	if p := r.think.rest(); !p.Empty() {
		r.part(p)
	}
}

func first(list ...*string) string {
	for _, s := range list {
		if s != nil && *s != "" {
			return *s
		}
	}
	return ""
}

// errorOf returns the message of an error as engines write it, or the text itself.
func errorOf(body []byte) string {
	var in struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	text := strings.TrimSpace(string(body))
	if json.Unmarshal(body, &in) == nil {
		var object struct {
			Message string `json:"message"`
		}
		var plain string
		switch {
		case json.Unmarshal(in.Error, &object) == nil && object.Message != "":
			text = object.Message
		case json.Unmarshal(in.Error, &plain) == nil && plain != "":
			text = plain
		case in.Message != "":
			text = in.Message
		}
	}
	return clean(text)
}

// clean returns a text of an engine in one line and with a limit.
func clean(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")), " ")
	if len(text) > maxError {
		text = strings.ToValidUTF8(text[:maxError], "") + "…"
	}
	return text
}

const (
	thinkBegin = "<think>"
	thinkEnd   = "</think>"
)

// thinking separates what a model thinks, between two tags at the beginning of its text, from its answer. The zero value is at the
// beginning.
type thinking struct {
	state   thought
	pending string // can be a part of a tag, or space before the text
}

type thought int

const (
	before thought = iota
	inside
	behind // after the end tag, where space does not count
	answer
)

// feed returns what is known of a further part of the text. PostgreSQL stores no zero byte, so there is none in the result.
func (t *thinking) feed(s string) (out live.Part) {
	t.pending += strings.ReplaceAll(s, "\x00", "")
	for {
		last := t.state
		switch t.state {
		case before:
			trimmed := strings.TrimLeft(t.pending, " \t\r\n")
			switch {
			case strings.HasPrefix(trimmed, thinkBegin):
				t.pending, t.state = trimmed[len(thinkBegin):], inside
			case !strings.HasPrefix(thinkBegin, trimmed):
				t.state = answer
			}
		case inside:
			text, rest, found := strings.Cut(t.pending, thinkEnd)
			if found {
				out.Reasoning += text
				t.pending, t.state = rest, behind
				break
			}
			cut := len(t.pending) - partOf(t.pending, thinkEnd)
			out.Reasoning += t.pending[:cut]
			t.pending = t.pending[cut:]
		case behind:
			if t.pending = strings.TrimLeft(t.pending, " \t\r\n"); t.pending != "" {
				t.state = answer
			}
		case answer:
			out.Text += t.pending
			t.pending = ""
		}
		if t.state == last {
			return out
		}
	}
}

// rest returns what is pending at the end.
func (t *thinking) rest() (out live.Part) {
	if t.state == inside {
		out.Reasoning = t.pending
	} else {
		out.Text = t.pending
	}
	t.pending = ""
	return out
}

// partOf returns the length of the longest end of a text that a tag begins with.
func partOf(text, tag string) int {
	for n := min(len(tag)-1, len(text)); n > 0; n-- {
		if strings.HasSuffix(text, tag[:n]) {
			return n
		}
	}
	return 0
}
