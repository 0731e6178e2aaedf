package modelmock

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// question is the part of a request for an answer that the engine reads.
type question struct {
	Model    string `json:"model"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Prompt json.RawMessage `json:"prompt"`
	Stream bool            `json:"stream"`
	Usage  struct {
		Include bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens           int             `json:"max_tokens"`
	MaxCompletionTokens int             `json:"max_completion_tokens"`
	ResponseFormat      format          `json:"response_format"`
	Tools               []tool          `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`
	kind                kind
}

// kind is an API of answers.
type kind struct{ object, chunk, prefix string }

var (
	chat       = kind{"chat.completion", "chat.completion.chunk", "chatcmpl-"}
	completion = kind{"text_completion", "text_completion", "cmpl-"}
)

// defaultTokens is the length of an answer that no limit shortens.
const defaultTokens = 16

// words returns the tokens of the whole prompt, and those of its last message.
func (q *question) words() (all, last []string) {
	if q.kind == completion {
		last = strings.Fields(text(q.Prompt))
		return last, last
	}
	for _, m := range q.Messages {
		last = strings.Fields(text(m.Content))
		all = append(append(all, "<"+m.Role+">"), last...)
	}
	return all, last
}

// text returns the text of a content: a string, or the texts of its parts.
func text(raw json.RawMessage) string {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return one
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(raw, &parts)
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text + " ")
	}
	return b.String()
}

// reply returns the tokens of the answer, and the tool that it calls.
func (q *question) reply(last []string) (called *tool, tokens []string) {
	words := strings.Join(last, " ")
	if called = q.called(last); called != nil {
		return called, pieces(filled(called.Function.Parameters, words))
	}
	if text := q.ResponseFormat.fill(words); text != "" {
		return nil, pieces(text)
	}
	return nil, reply(last, q.limit())
}

func (q *question) limit() int {
	switch {
	case q.MaxCompletionTokens > 0:
		return q.MaxCompletionTokens
	case q.MaxTokens > 0:
		return q.MaxTokens
	}
	return defaultTokens
}

// answered returns the handler of an API.
func (e *Engine) answered(k kind) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		start := time.Now()
		q := question{kind: k}
		if !read(rw, r, &q) || e.refuse(rw, q.Model) {
			return
		}
		fault := e.faults.take()
		if fault.spoil(rw, r) {
			return
		}
		all, last := q.words()
		s := &sequence{prompt: all, start: start}
		var called *tool
		called, s.answer = q.reply(last)
		if n := len(all) + len(s.answer); n > e.cfg.MaxModelLen {
			fail(rw, http.StatusBadRequest, fmt.Sprintf("the prompt and its answer have %d tokens, at most %d are possible", n, e.cfg.MaxModelLen))
			return
		}
		a := &answer{Engine: e, question: &q, sequence: s, tool: called, id: fmt.Sprint(k.prefix, e.next.Add(1)), rw: rw, cutAfter: fault.CutAfter}
		if q.Stream {
			a.stream(r)
		} else {
			a.whole(r)
		}
	}
}

// answer is one answer on its way to the client.
type answer struct {
	*Engine
	*question
	*sequence
	tool     *tool // that the answer calls; nil: none
	id       string
	rw       http.ResponseWriter
	cutAfter int
}

var errCut = errors.New("cut on request")

func (a *answer) whole(r *http.Request) {
	var b strings.Builder
	err := a.run(r.Context(), a.sequence, func(_ int, token string) error {
		b.WriteString(token)
		return nil
	})
	if err != nil {
		a.meter.aborted.Inc()
		return
	}
	choice := map[string]any{"index": 0, "finish_reason": a.reason()}
	switch {
	case a.kind == completion:
		choice["text"] = b.String()
	case a.tool != nil:
		choice["message"] = map[string]any{"role": "assistant", "content": nil, "tool_calls": a.call(b.String())}
	default:
		choice["message"] = map[string]any{"role": "assistant", "content": b.String()}
	}
	out := a.frame(a.kind.object, []any{choice})
	out["usage"] = a.usage(len(a.sequence.answer))
	write(a.rw, out)
}

func (a *answer) reason() string {
	switch {
	case a.tool != nil:
		return "tool_calls"
	case a.ResponseFormat.fill("") == "" && (a.MaxTokens > 0 || a.MaxCompletionTokens > 0):
		return "length"
	}
	return "stop"
}

func (a *answer) usage(generated int) map[string]any {
	return map[string]any{
		"prompt_tokens": len(a.prompt), "completion_tokens": generated, "total_tokens": len(a.prompt) + generated,
		"prompt_tokens_details": map[string]int{"cached_tokens": a.cached},
	}
}

func (a *answer) frame(object string, choices []any) map[string]any {
	return map[string]any{"id": a.id, "object": object, "created": a.start.Unix(), "model": a.Model, "choices": choices}
}

// stream sends the answer as server-sent events.
func (a *answer) stream(r *http.Request) {
	a.rw.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	flush := http.NewResponseController(a.rw)
	send := func(v any) error {
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(a.rw, "data: %s\n\n", b); err != nil {
			return err
		}
		return flush.Flush()
	}
	err := a.run(r.Context(), a.sequence, func(i int, token string) error {
		if a.cutAfter > 0 && i == a.cutAfter {
			return errCut
		}
		return send(a.frame(a.kind.chunk, []any{a.delta(i, token)}))
	})
	switch {
	case errors.Is(err, errCut):
		panic(http.ErrAbortHandler)
	case err != nil:
		a.meter.aborted.Inc()
		return
	}
	end := map[string]any{"index": 0, "finish_reason": a.reason()}
	if a.kind == chat {
		end["delta"] = map[string]any{}
	} else {
		end["text"] = ""
	}
	if send(a.frame(a.kind.chunk, []any{end})) != nil {
		return
	}
	if a.Usage.Include {
		last := a.frame(a.kind.chunk, []any{})
		last["usage"] = a.usage(len(a.sequence.answer))
		if send(last) != nil {
			return
		}
	}
	fmt.Fprint(a.rw, "data: [DONE]\n\n")
}

func (a *answer) delta(i int, token string) map[string]any {
	if a.kind == completion {
		return map[string]any{"index": 0, "text": token, "finish_reason": nil}
	}
	delta := map[string]any{"content": token}
	if a.tool != nil {
		delta = map[string]any{"tool_calls": a.callDelta(i, token)}
	}
	if i == 0 {
		delta["role"] = "assistant"
	}
	return map[string]any{"index": 0, "delta": delta, "finish_reason": nil}
}
