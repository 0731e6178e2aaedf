package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m) }

const id = "01900000-0000-7000-8000-0000000000d1"

// models is a gateway that answers with these events.
func models(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, body map[string]any)) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != "/v1/chat/completions" {
			t.Errorf("%s: %v", r.URL, err)
		}
		answer(w, r, body)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

func newServer(t *testing.T, url string) *clitest.Server {
	f := clitest.New(t, func(a *cli.App) []*cobra.Command { return []*cobra.Command{Command(a)} })
	f.Data("ModelsURL", fmt.Sprintf(`{"modelsURL":%q}`, url))
	f.Data("Deployments", `{"deployments":`+clitest.Edges(`{"id":"`+id+`","name":"llama","status":"SERVING","project":{},"owner":{}}`)+`}`)
	f.Data("CreateDeploymentKey", `{"payload":{"key":{"id":"k1","prefix":"bm_a","user":{}},"secret":"bm_abc"}}`)
	f.Data("RevokeDeploymentKey", `{"payload":{"key":{"id":"k1","user":{}}}}`)
	return f
}

const stream = `: starting replica 1

data: {"choices":[{"delta":{"role":"assistant"}}]}

data: {"choices":[{"delta":{"content":"Hi\u001b[2J\u0007"}}]}

data: {"choices":[{"delta":{"content":" there\u202e\n"},"finish_reason":"stop"}]}

data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}

data: [DONE]

`

func TestOneShotWithAKeyOfItsOwn(t *testing.T) {
	var got map[string]any
	var auth string
	f := newServer(t, models(t, func(w http.ResponseWriter, r *http.Request, body map[string]any) {
		got, auth = body, r.Header.Get("Authorization")
		fmt.Fprint(w, stream)
	}))
	r := f.Run("chat", "llama", "Say", "hi", "--system", "Be short.", "--temperature", "0.5", "--max-tokens", "9", "--json", "-v")
	if r.Code != 0 || r.Out != "Hi\\x1b[2J\\x07 there\\u202e\n\n" {
		t.Errorf("%+v", r)
	}
	if !strings.Contains(r.Errors, "5 tokens in, 2 out") || !strings.Contains(r.Errors, "llama: starting replica 1") {
		t.Errorf("%s", r.Errors)
	}
	if auth != "Bearer bm_abc" || f.Count("RevokeDeploymentKey") != 1 {
		t.Errorf("%s, %v", auth, f.Calls)
	}
	text, _ := json.Marshal(got)
	for _, want := range []string{`"model":"llama"`, `{"content":"Be short.","role":"system"},{"content":"Say hi","role":"user"}`, `"temperature":0.5`, `"max_tokens":9`, `"json_object"`, `"stream":true`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}

func TestPromptOnStandardInputWithAGivenKey(t *testing.T) {
	var auth string
	f := newServer(t, models(t, func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		auth = r.Header.Get("Authorization")
		fmt.Fprint(w, stream)
	}))
	env := map[string]string{"BERTH_TOKEN": "secret", "BERTH_URL": f.URL, "BERTH_MODEL_KEY": "bm_env"}
	r := f.RunWith(env, "Say hi\n", "chat", "llama", "-o", "json")
	var got answer
	if err := json.Unmarshal([]byte(r.Out), &got); err != nil || got.Answer != "Hi\x1b[2J\a there\u202e\n" || got.FinishReason != "stop" || got.Usage.Completion != 2 {
		t.Errorf("%v, %+v", err, r)
	}
	if auth != "Bearer bm_env" || f.Count("CreateDeploymentKey") != 0 {
		t.Errorf("%s, %v", auth, f.Calls)
	}
	if r := f.RunWith(env, " \n", "chat", "llama"); r.Code != cli.ExitUsage {
		t.Errorf("%+v", r)
	}
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		code   int
		want   string
	}{
		"over the budget": {429, `{"error":{"message":"the key has used its budget of 10 tokens"}}`, cli.ExitInvalid, "budget of 10 tokens, try again in 30 s"},
		"no such model":   {404, `{"error":{"message":"there is no model \"x\""}}`, cli.ExitNotFound, "no model"},
		"a wrong key":     {401, `nonsense`, cli.ExitDenied, "401 Unauthorized"},
		"no replica":      {503, `{"error":{"message":"no replica is ready"}}`, cli.ExitUnavailable, "no replica is ready"},
		"broken off":      {200, "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: {\"error\":{\"message\":\"the engine ended\"}}\n\n", cli.ExitConflict, "the engine ended"},
		"cut":             {200, "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n", cli.ExitUnavailable, "ended early"},
		"not JSON":        {200, "data: what\n\n", cli.ExitGeneral, "read the answer"},
		"a redirect":      {307, "", cli.ExitUnavailable, "307"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newServer(t, models(t, func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
				w.Header().Set("Retry-After", "30")
				w.Header().Set("Location", "http://192.0.2.1/")
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.body)
			}))
			if r := f.Run("chat", "llama", "hi"); r.Code != c.code || !strings.Contains(r.Errors, c.want) || f.Count("RevokeDeploymentKey") != 1 {
				t.Errorf("%+v", r)
			}
		})
	}
	f := newServer(t, "")
	f.Data("ModelsURL", `{"modelsURL":null}`)
	if r := f.Run("chat", "llama", "hi"); r.Code != cli.ExitConflict || !strings.Contains(r.Errors, "no gateway serves models") {
		t.Errorf("%+v", r)
	}
}

// Some engines end a stream without [DONE].
func TestStreamWithoutDone(t *testing.T) {
	f := newServer(t, models(t, func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n")
	}))
	if r := f.Run("chat", "llama", "hi"); r.Code != 0 || !strings.Contains(r.Out, "Hi") {
		t.Errorf("%+v", r)
	}
}

func TestConversation(t *testing.T) {
	stopped := make(chan struct{})
	signals := make(chan os.Signal, 1)
	var asked [][]any
	url := models(t, func(w http.ResponseWriter, r *http.Request, body map[string]any) {
		asked = append(asked, body["messages"].([]any))
		if len(asked) == 2 { // this answer does not end by itself
			fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"Well\"}}]}\n\n")
			w.(http.Flusher).Flush()
			signals <- syscall.SIGINT
			<-r.Context().Done()
			close(stopped)
			return
		}
		fmt.Fprint(w, stream)
	})
	var out, errs bytes.Buffer
	talk := &talk{app: cli.New(strings.NewReader(""), &out, &errs, func(string) string { return "" }), url: url, model: "llama"}
	if err := talk.app.Root().ParseFlags(nil); err != nil { // sets the output format
		t.Fatal(err)
	}
	in := make(chan string)
	go func() {
		for _, line := range []string{"one", "two", "", "three"} {
			in <- line
		}
		close(in)
	}()
	if err := talk.converse(t.Context(), in, signals); err != nil {
		t.Fatal(err)
	}
	<-stopped // the engine sees that the answer is not wanted
	last := fmt.Sprint(asked[2])
	if len(asked) != 3 || !strings.Contains(last, "one") || !strings.Contains(last, "Hi") || !strings.Contains(last, "three") {
		t.Errorf("%v", asked)
	}
	if !strings.Contains(errs.String(), "(stopped)") || strings.ContainsAny(out.String(), "\x1b\a\u202e") {
		t.Errorf("%q, %q", out.String(), errs.String())
	}
}

func TestHostileText(t *testing.T) {
	var b bytes.Buffer
	in := "a\tb\n\x1b]52;c;ZXZpbA==\a\r\x7f\u009b2J\u2066日本 👍"
	if _, err := io.WriteString(&plain{w: &b}, in); err != nil {
		t.Fatal(err)
	}
	if want := "a\tb\n\\x1b]52;c;ZXZpbA==\\x07\\x0d\\x7f\\x9b2J\\u2066日本 👍"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}
