package chat

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/cmd/berth/output"
)

const (
	// maxEvent limits one event of a stream, in bytes.
	maxEvent = 4 << 20
	// maxAnswer limits the text of an answer that is kept, in bytes.
	maxAnswer = 16 << 20
)

// answer is an answer of a model, with the measured times.
type answer struct {
	Model        string   `json:"model"`
	Answer       string   `json:"answer"`
	FinishReason string   `json:"finishReason"`
	Usage        *usage   `json:"usage"`
	FirstToken   *float64 `json:"firstTokenSeconds"`
	Total        float64  `json:"totalSeconds"`
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func (x *answer) summary() string {
	var parts []string
	if x.FirstToken != nil {
		parts = append(parts, fmt.Sprintf("first token after %s", output.Duration(seconds(*x.FirstToken))))
		if *x.FirstToken < 1 {
			parts[0] = fmt.Sprintf("first token after %.0f ms", *x.FirstToken*1000)
		}
	}
	if x.Usage != nil {
		parts = append(parts, fmt.Sprintf("%d tokens in, %d out", x.Usage.Prompt, x.Usage.Completion))
		if x.FirstToken != nil && x.Usage.Completion > 1 && x.Total > *x.FirstToken {
			parts = append(parts, fmt.Sprintf("%.1f tokens/s", float64(x.Usage.Completion-1)/(x.Total-*x.FirstToken)))
		}
	}
	return strings.Join(append(parts, fmt.Sprintf("%.2f s in all", x.Total)), ", ")
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// chunk is one event of a stream.
type chunk struct {
	Choices []struct {
		Delta        struct{ Content string }
		FinishReason *string `json:"finish_reason"`
	}
	Usage *usage
	Error *struct{ Message string }
}

// stream sends a conversation and writes the text of the answer as it arrives. comment gets what the router says
// while no replica is ready. After an error, the answer is what had arrived.
func (t *talk) stream(ctx context.Context, messages []message, w io.Writer, comment func(string)) (*answer, error) {
	body := map[string]any{"model": t.model, "messages": messages, "stream": true, "stream_options": map[string]bool{"include_usage": true}}
	if t.temperature != nil {
		body["temperature"] = *t.temperature
	}
	if t.maxTokens != nil {
		body["max_tokens"] = *t.maxTokens
	}
	if t.jsonMode {
		body["response_format"] = map[string]string{"type": "json_object"}
	}
	start := time.Now()
	resp, err := t.send(ctx, body)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	got := &answer{Model: t.model}
	var text strings.Builder
	err = events(resp.Body, comment, func(data []byte) error {
		var c chunk
		if err := json.Unmarshal(data, &c); err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		if c.Error != nil {
			return fmt.Errorf("the model broke off: %s: %w", c.Error.Message, errdefs.ErrAborted)
		}
		if c.Usage != nil {
			got.Usage = c.Usage
		}
		for _, choice := range c.Choices {
			if choice.FinishReason != nil {
				got.FinishReason = *choice.FinishReason
			}
			if choice.Delta.Content == "" {
				continue
			}
			if got.FirstToken == nil {
				first := time.Since(start).Seconds()
				got.FirstToken = &first
			}
			if text.Len()+len(choice.Delta.Content) > maxAnswer {
				return fmt.Errorf("the answer has more than %d bytes: %w", maxAnswer, errdefs.ErrResourceExhausted)
			}
			text.WriteString(choice.Delta.Content)
			if _, err := io.WriteString(w, choice.Delta.Content); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, errNotDone) && got.FinishReason != "" {
		err = nil // such as that of transformers serve, which sends no [DONE]
	}
	got.Answer, got.Total = text.String(), time.Since(start).Seconds()
	return got, err
}

// send posts a request, and turns an answer that is not 200 into an error.
func (t *talk) send(ctx context.Context, body any) (*http.Response, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url+"/chat/completions", bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("address of models: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", t.app.UserAgent())
	if t.key != "" {
		req.Header.Set("Authorization", "Bearer "+t.key)
	}
	// A redirect could send the conversation elsewhere.
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := c.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("%w: %w", err, errdefs.ErrUnavailable)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, refusal(resp)
}

var classes = map[int]error{
	http.StatusBadRequest: errdefs.ErrInvalidArgument, http.StatusUnauthorized: errdefs.ErrUnauthenticated, http.StatusForbidden: errdefs.ErrPermissionDenied,
	http.StatusNotFound: errdefs.ErrNotFound, http.StatusTooManyRequests: errdefs.ErrResourceExhausted,
}

func refusal(resp *http.Response) error {
	class := classes[resp.StatusCode]
	if class == nil {
		class = errdefs.ErrUnavailable
	}
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var said struct{ Error struct{ Message string } }
	text := resp.Status
	if json.Unmarshal(raw, &said) == nil && said.Error.Message != "" {
		text = said.Error.Message
	}
	if after := resp.Header.Get("Retry-After"); after != "" {
		text += ", try again in " + after + " s"
	}
	return fmt.Errorf("%s: %w", text, class)
}

// events calls data for each event of a stream until [DONE], and comment for each comment.
func events(r io.Reader, comment func(string), data func([]byte) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxEvent)
	var event []byte
	for s.Scan() {
		line := bytes.TrimSuffix(s.Bytes(), []byte("\r"))
		switch {
		case len(line) == 0 && len(event) > 0:
			if string(event) == "[DONE]" {
				return nil
			}
			if err := data(event); err != nil {
				return err
			}
			event = event[:0]
		case bytes.HasPrefix(line, []byte(":")):
			comment(strings.TrimSpace(string(line[1:])))
		case bytes.HasPrefix(line, []byte("data:")):
			if len(event) > 0 {
				event = append(event, '\n')
			}
			event = append(event, bytes.TrimPrefix(line[len("data:"):], []byte(" "))...)
			if len(event) > maxEvent {
				return bufio.ErrTooLong
			}
		}
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return errNotDone
}

// errNotDone is the error of a stream that ended without [DONE].
var errNotDone = fmt.Errorf("the answer ended early: %w", errdefs.ErrUnavailable)
