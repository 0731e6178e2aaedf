package modelmock

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

func serve(t testing.TB, cfg Config) (*Engine, string) {
	e := New(cfg)
	srv := httptest.NewServer(e)
	t.Cleanup(srv.Close)
	return e, srv.URL
}

func post(t testing.TB, ctx context.Context, url, body string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

type counted struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	Details          struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func TestChatAnswersWithTheWordsOfThePrompt(t *testing.T) {
	_, url := serve(t, Config{})
	resp := post(t, t.Context(), url+"/v1/chat/completions",
		`{"model": "mock", "max_tokens": 3, "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": [{"type": "text", "text": "a b"}]}]}`)
	var out struct {
		Choices []struct {
			Message      struct{ Content string }
			FinishReason string `json:"finish_reason"`
		}
		Usage counted
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		t.Fatal(err)
	}
	if c := out.Choices[0]; c.Message.Content != "a b a" || c.FinishReason != "length" {
		t.Errorf("answer %+v, want a b a", c)
	}
	if u := out.Usage; u.PromptTokens != 6 || u.CompletionTokens != 3 || u.Details.Cached != 0 {
		t.Errorf("usage %+v, want 6 tokens of the prompt and 3 of the answer", u)
	}
}

func TestStreamHasUsageOnlyIfAsked(t *testing.T) {
	_, url := serve(t, Config{})
	for _, asked := range []bool{false, true} {
		resp := post(t, t.Context(), url+"/v1/completions",
			fmt.Sprintf(`{"model": "mock", "max_tokens": 4, "prompt": "x y", "stream": true, "stream_options": {"include_usage": %t}}`, asked))
		var text string
		var usage *counted
		lines, done := bufio.NewScanner(resp.Body), false
		for lines.Scan() {
			data, is := strings.CutPrefix(lines.Text(), "data: ")
			if !is {
				continue
			}
			if done = data == "[DONE]"; done {
				break
			}
			var chunk struct {
				Choices []struct{ Text string }
				Usage   *counted
			}
			if err := json.Unmarshal([]byte(data), &chunk); err != nil {
				t.Fatal(err)
			}
			if chunk.Usage != nil {
				usage = chunk.Usage
			}
			for _, c := range chunk.Choices {
				text += c.Text
			}
		}
		if !done || text != "x y x y" || (usage != nil) != asked {
			t.Errorf("usage asked %t: done %t, text %q, usage %v", asked, done, text, usage)
		}
		if asked && usage.CompletionTokens != 4 {
			t.Errorf("usage %+v, want 4 tokens of the answer", usage)
		}
	}
}

func TestPrefixCache(t *testing.T) {
	c := newCache(2, 4)
	for _, step := range []struct {
		tokens string
		hit    int
	}{
		{"a b c d", 0},
		{"a b c d e", 4},
		{"a b x y", 2},
		{"b a c d", 0}, // another prefix; evicts the least recently used block
		{"a b c d", 2},
	} {
		if hit := c.take(strings.Fields(step.tokens)); hit != step.hit {
			t.Errorf("%q: %d tokens from the cache, want %d", step.tokens, hit, step.hit)
		}
	}
	if c.use() != 1 {
		t.Errorf("%.2f of the blocks are used, want all", c.use())
	}
}

func TestFaults(t *testing.T) {
	e, url := serve(t, Config{})
	ask := func(stream bool) (int, error) {
		resp := post(t, t.Context(), url+"/v1/completions", fmt.Sprintf(`{"model": "mock", "prompt": "x", "stream": %t}`, stream))
		_, err := io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, err
	}
	e.Fail(Fault{Status: 500, Times: 1})
	if code, _ := ask(false); code != 500 {
		t.Errorf("status %d, want 500", code)
	}
	if code, _ := ask(false); code != 200 {
		t.Errorf("status %d after the fault, want 200", code)
	}
	e.Fail(Fault{CutAfter: 2, Times: 1})
	if _, err := ask(true); err == nil {
		t.Error("the stream was not cut")
	}
	r, _ := http.NewRequest(http.MethodPut, url+"/mock/fault", bytes.NewReader([]byte(`{"unhealthy": true}`)))
	if resp, err := http.DefaultClient.Do(r); err != nil || resp.StatusCode != http.StatusNoContent {
		t.Fatal(resp, err)
	}
	if resp, err := http.Get(url + "/health"); err != nil || resp.StatusCode != http.StatusInternalServerError {
		t.Error("an unhealthy engine says that it is healthy")
	}
}

func TestClientThatLeavesIsCounted(t *testing.T) {
	e, url := serve(t, Config{Decode: 1})
	ctx, leave := context.WithCancel(t.Context())
	resp := post(t, ctx, url+"/v1/completions", `{"model": "mock", "prompt": "x", "stream": true}`)
	if _, err := resp.Body.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	leave()
	for end := time.Now().Add(20 * time.Second); value(e.meter.aborted) != 1; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the request goes on after its client has left")
		}
	}
	if running := value(e.meter.running); running != 0 {
		t.Errorf("%v sequences run, want 0", running)
	}
}

func TestSleepAndOtherModels(t *testing.T) {
	_, url := serve(t, Config{Model: "m"})
	ask := func(model string) int {
		return post(t, t.Context(), url+"/v1/completions", fmt.Sprintf(`{"model": %q, "prompt": "x"}`, model)).StatusCode
	}
	if code := ask("other"); code != http.StatusNotFound {
		t.Errorf("another model: status %d, want 404", code)
	}
	post(t, t.Context(), url+"/sleep", "")
	if code := ask("m"); code != http.StatusServiceUnavailable {
		t.Errorf("asleep: status %d, want 503", code)
	}
	post(t, t.Context(), url+"/wake_up", "")
	if code := ask("m"); code != http.StatusOK {
		t.Errorf("awake: status %d, want 200", code)
	}
}

func value(m prometheus.Metric) float64 {
	var out dto.Metric
	if err := m.Write(&out); err != nil {
		return -1
	}
	return out.GetCounter().GetValue() + out.GetGauge().GetValue()
}
