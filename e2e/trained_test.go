package e2e

import (
	"strings"
	"testing"

	"github.com/berthhq/berth/e2e/cluster"
)

// A transformer is trained in a batch session, served by Hugging Face's server from the folder of the training, and asked. It
// answers while its revision changes. A bad revision is rolled back by itself. Without requests there is no replica, and a
// question starts one. A key ends with its budget. The test needs the large image transformers, and is skipped without it.
func TestTrainedModel(t *testing.T) {
	if !platform.HasImage("transformers") {
		t.Skip("the image transformers is not built: bin/tools/mkimage -o build/images/transformers examples/serving/tiny-transformer")
	}
	u := platform.User(t)
	berth := u.Shell()
	where := []string{"--project", u.Project, "--cpu", "1", "--mem", "2g"}
	berth.Must("folder", "create", "weights")
	training := append([]string{"run", "transformers:5.23", "-v", "weights:/home/work/weights"}, where...)
	t.Log(berth.Must(append(training, "--", "/opt/serving/train.py", "weights/tiny")...))

	engine := []string{"sh", "-c", "cd /models && exec transformers serve tiny --host 0.0.0.0 --port 8000 --device cpu"}
	deploy := append([]string{"deploy", "create", "tiny", "--image", "transformers:5.23", "--model", "weights", "--port", "8000", "--health", "/health",
		"--interval", "1s", "--start-timeout", "3m"}, where...)
	berth.Must(append(append(deploy, "--"), engine...)...)
	t.Cleanup(func() { berth.Must("deploy", "rm", "tiny", "--force", "--wait") })
	berth.Must("deploy", "wait", "tiny")
	ask := func() {
		t.Helper()
		if answer := berth.Must("chat", "tiny", "What is the capital of France?", "--temperature", "0", "--max-tokens", "40"); !strings.Contains(answer, "Paris") {
			t.Errorf("the capital of France: %q", answer)
		}
	}
	ask()

	load := &cluster.Traffic{
		Request:   `{"model":"tiny","messages":[{"role":"user","content":"What is 3 plus 4?"}],"max_tokens":20,"temperature":0}`,
		Key:       cluster.ModelKey(berth.Must("deploy", "key", "create", "program", "--deployment", "tiny")),
		Addresses: []string{platform.URL + "/v1"},
	}
	load.Begin()
	berth.Must("deploy", "update", "tiny", "--env", "REVISION=2")
	berth.Must("deploy", "wait", "tiny")
	berth.Must("deploy", "update", "tiny", "--start-timeout", "5s", "--", "sh", "-c", "cd /models && exec transformers serve other --port 8000")
	if r := berth.Run("deploy", "wait", "tiny"); r.Code == 0 || !strings.Contains(r.Stdout+r.Stderr, "rolled back") {
		t.Errorf("a revision without its model: %+v", r)
	}
	load.End(t)

	berth.Must("deploy", "scale", "tiny", "--min", "0", "--zero-after", "10s")
	cluster.Eventually(t, "the deployment sleeps", func() bool { return strings.Contains(berth.Must("deploy", "ls"), "asleep") })
	ask()
	small := &cluster.Traffic{Request: load.Request, Key: cluster.ModelKey(berth.Must("deploy", "key", "create", "small", "--deployment", "tiny", "--token-budget", "5")), Addresses: load.Addresses}
	if err := small.Once(0); err != nil {
		t.Errorf("a request with a budget: %v", err)
	}
	cluster.Eventually(t, "the budget of the key is used", func() bool {
		err := small.Once(0)
		return err != nil && strings.Contains(err.Error(), "insufficient_quota")
	})
}
