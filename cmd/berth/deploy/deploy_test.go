package deploy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m) }

const (
	idLlama = "01900000-0000-7000-8000-0000000000d1"
	common  = `"id":"` + idLlama + `","name":"llama","description":"for all","status":"UPDATING","message":"Revision 2 gets 10% of the requests.","shared":true,"open":false,
		"wanted":3,"current":1,"target":2,"concurrency":0,"drainSeconds":60,"createdAt":"2026-03-04T09:00:00Z","lastRequestAt":"2026-03-04T11:59:50Z","permissions":["READ","UPDATE"],
		"project":{"id":"p1","name":"ml"},"owner":{"id":"u1","email":"ada@example.org"},"traffic":[{"revision":1,"percent":90},{"revision":2,"percent":10}],"ready":{"totalCount":2},
		"load":{"inFlight":4,"waiting":1,"requestsPerSecond":12.25,"errorRate":0.01,"promptTokensPerSecond":900,"completionTokensPerSecond":310,"cachedShare":0.5,
			"firstByteP50":80,"firstByteP95":1400,"perTokenP50":9.5,"perTokenP95":20,"replicas":[{"replica":"r1","inFlight":4,"requestsPerSecond":12,"errorRate":0,"ejected":false}]}`
	detail = `{` + common + `,"strategy":{"kind":"CANARY","maxSurge":1,"maxUnavailable":0,"autoPromote":true,"promoteAfter":0,"steps":[10,50],"stepTime":120,"deadline":3600},
		"scaling":{"min":0,"max":8,"zeroAfter":900,"upAfter":30,"downAfter":300,"targets":[{"metric":"requests","perReplica":8,"sum":true}],
			"schedules":[{"from":"08:00","to":"18:00","days":[1,2],"timeZone":"UTC","replicas":4}]}}`
	revisionOne = `{"id":"v1","number":1,"comment":"","variant":"vllm","options":{"maxModelLen":"4096"},"image":"r/vllm:0.10","vfolder":{"id":"f1","name":"llama-3"},"subpath":"8b",
		"request":{"image":"r/vllm:0.10","type":"INFERENCE","project":"p1","slots":{"cpu":"4","mem":"8589934592","cuda.device":"1"},"environment":{"A":"1","B":"2"},"command":["vllm","serve"],
			"mounts":[{"vfolder":"f2","target":"/home/work/data","readOnly":true},{"vfolder":"f1","target":"/models","readOnly":true}]},
		"engine":{"port":8000,"health":"/health","healthStatus":200,"interval":5,"timeout":5,"retries":3,"startTimeout":1800,"metrics":"/metrics"},"createdAt":"2026-03-04T09:00:00Z","creator":null}`
)

func newServer(t *testing.T) *clitest.Server {
	f := clitest.New(t, func(a *cli.App) []*cobra.Command { return []*cobra.Command{Command(a)} })
	f.Data("Viewer", `{"viewer":{"user":{"id":"u1","email":"ada@example.org"},"projects":[{"id":"p1","name":"ml"}],"resourceGroups":[]}}`)
	f.Data("Deployments", `{"deployments":`+clitest.Edges(`{`+common+`}`)+`}`)
	f.Data("Deployment", `{"node":`+detail+`}`)
	f.Data("ModelsURL", `{"modelsURL":"https://berth.example.org/v1"}`)
	f.Data("DeploymentRevisions", `{"node":{"revisions":{"edges":[{"node":`+revisionOne+`}]}}}`)
	f.Data("DeploymentReplicas", `{"node":{"replicas":{"edges":[
		{"node":{"id":"r2","revision":2,"phase":"STARTING","phaseSince":"2026-03-04T11:59:00Z","message":"The image is pulled.","createdAt":"2026-03-04T11:58:00Z","session":null}},
		{"node":{"id":"r1","revision":1,"phase":"READY","phaseSince":"2026-03-04T09:01:00Z","message":"","createdAt":"2026-03-04T09:00:00Z","session":{"id":"s1","name":"llama-r1","status":"RUNNING"}}},
		{"node":{"id":"r0","revision":1,"phase":"ENDED","phaseSince":"2026-03-04T09:01:00Z","message":"The engine exited with code 1.","failed":true,"createdAt":"2026-03-04T09:00:00Z","endedAt":"2026-03-04T09:01:00Z","session":null}}]}}}`)
	f.Data("DeploymentEvents", `{"node":{"events":{"edges":[
		{"node":{"id":"e2","createdAt":"2026-03-04T11:50:00Z","kind":"STEPPED","revision":2,"metric":"","message":"Revision 2 gets 10%."}},
		{"node":{"id":"e1","createdAt":"2026-03-04T11:00:00Z","kind":"SCALED","revision":null,"replicasBefore":2,"replicasAfter":3,"metric":"requests","value":21,"limit":8,"message":"21 requests in flight."}}]}}}`)
	return f
}

func TestOutput(t *testing.T) {
	newServer(t).Golden(map[string][]string{
		"ls":     {"deploy", "ls"},
		"show":   {"deploy", "show", "llama"},
		"events": {"deploy", "events", "llama"},
	})
}

// sent returns the input of the only call of an operation.
func sent(t *testing.T, vars string) map[string]any {
	t.Helper()
	var got struct{ Input map[string]any }
	if err := json.Unmarshal([]byte(vars), &got); err != nil {
		t.Fatalf("%v in %q", err, vars)
	}
	return got.Input
}

func expect(t *testing.T, got map[string]any, want string) {
	t.Helper()
	var w map[string]any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestCreate(t *testing.T) {
	f := newServer(t)
	said := clitest.Record(f, map[string]string{"CreateDeployment": `{"payload":{"deployment":` + detail + `}}`})
	r := f.Run("deploy", "create", "llama", "--image", "vllm:0.10", "--variant", "vllm", "--model", "llama-3", "--option", "maxModelLen=8192", "--cpu", "2", "--mem", "4g",
		"-e", "A=1", "--shared", "--min", "0", "--max", "4", "--target", "requests=8", "--target", "vllm:x=0.5/sum", "--schedule", "fri-sun/20:00-02:00=3@Europe/Berlin",
		"--strategy", "blue-green", "--auto-promote=false", "--interval", "10s")
	if r.Code != 0 || !strings.HasPrefix(r.Out, "llama: updating, Revision 2") {
		t.Fatalf("%+v", r)
	}
	expect(t, sent(t, said["CreateDeployment"]), `{"name":"llama","shared":true,
		"revision":{"variant":"vllm","model":"llama-3","options":{"maxModelLen":"8192"},"interval":10,
			"request":{"image":"vllm:0.10","slots":{"cpu":"2","mem":"4294967296"},"environment":{"A":"1"}}},
		"strategy":{"kind":"BLUE_GREEN","autoPromote":false},
		"scaling":{"min":0,"max":4,"targets":[{"metric":"requests","perReplica":8},{"metric":"vllm:x","perReplica":0.5,"sum":true}],
			"schedules":[{"from":"20:00","to":"02:00","days":[5,6,0],"timeZone":"Europe/Berlin","replicas":3}]}}`)
}

func TestUpdateStartsFromTheCurrentRevision(t *testing.T) {
	f := newServer(t)
	said := clitest.Record(f, map[string]string{
		"AddDeploymentRevision": `{"payload":{"deployment":` + detail + `}}`,
		"UpdateDeployment":      `{"payload":{"deployment":` + detail + `}}`,
	})
	if r := f.Run("deploy", "update", "llama", "--cpu", "8", "-r", "cuda.device=0", "-e", "B=3", "--option", "dtype=half", "--comment", "faster"); r.Code != 0 || f.Count("UpdateDeployment") != 0 {
		t.Fatalf("%+v", r)
	}
	expect(t, sent(t, said["AddDeploymentRevision"]), `{"deployment":"`+idLlama+`","revision":{"variant":"vllm","model":"f1","subpath":"8b","comment":"faster",
		"options":{"maxModelLen":"4096","dtype":"half"},"port":8000,"health":"/health","healthStatus":200,"interval":5,"timeout":5,"retries":3,"startTimeout":1800,"metrics":"/metrics",
		"request":{"image":"r/vllm:0.10","slots":{"cpu":"8","mem":"8589934592"},"environment":{"A":"1","B":"3"},"mounts":[{"vfolder":"f2","target":"/home/work/data","readOnly":true}]}}}`)
	if r := f.Run("deploy", "update", "llama", "--variant", "custom", "--port", "9000", "--", "/serve"); r.Code != 0 {
		t.Fatalf("%+v", r)
	}
	got := sent(t, said["AddDeploymentRevision"])["revision"].(map[string]any)
	if got["options"] != nil || got["health"] != nil || got["port"] != 9000.0 || !cmp.Equal(got["request"].(map[string]any)["command"], []any{"/serve"}) {
		t.Errorf("%v", got)
	}
	if r := f.Run("deploy", "update", "llama", "--health", "none"); r.Code != 0 {
		t.Fatalf("%+v", r)
	}
	if got := sent(t, said["AddDeploymentRevision"])["revision"].(map[string]any); got["health"] != "" || got["metrics"] != "/metrics" {
		t.Errorf("%v", got)
	}
	if r := f.Run("deploy", "update", "llama", "--shared=false", "--target", "none"); r.Code != 0 || f.Count("AddDeploymentRevision") != 3 {
		t.Fatalf("%+v", r)
	}
	expect(t, sent(t, said["UpdateDeployment"]), `{"id":"`+idLlama+`","shared":false,"scaling":{"targets":[]}}`)
	if r := f.Run("deploy", "update", "llama"); r.Code != cli.ExitUsage || !strings.Contains(r.Errors, "nothing to change") {
		t.Errorf("%+v", r)
	}
}

func TestErrorNamesTheFlag(t *testing.T) {
	f := newServer(t)
	f.Data("CreateDeployment", `{"code":"INVALID_ARGUMENT","message":"is not a path on the engine","field":"revision.healthStatus"}`)
	if r := f.Run("deploy", "create", "x", "--image", "i", "--", "/serve"); r.Code != cli.ExitInvalid || !strings.Contains(r.Errors, "--health-status") {
		t.Errorf("%+v", r)
	}
	for _, bad := range [][]string{{"--target", "requests"}, {"--target", "requests=0"}, {"--target", "=4"}, {"--schedule", "8-10"}, {"--schedule", "may/08:00-10:00=3"}, {"--option", "x"}, {"--strategy", "big-bang"}} {
		if r := f.Run(append([]string{"deploy", "create", "x", "--image", "i"}, bad...)...); r.Code != cli.ExitUsage {
			t.Errorf("%v: %+v", bad, r)
		}
	}
}

func TestScaleRollBackAndPromote(t *testing.T) {
	f := newServer(t)
	said := clitest.Record(f, map[string]string{
		"UpdateDeployment": `{"payload":{"deployment":` + detail + `}}`, "RollBackDeployment": `{"payload":{"deployment":` + detail + `}}`,
		"PromoteDeployment": `{"payload":{"deployment":` + detail + `}}`, "DeleteDeployment": `{"payload":{"deployment":` + detail + `}}`,
	})
	for op, c := range map[string]struct {
		args []string
		want string
	}{
		"UpdateDeployment":   {[]string{"scale", "llama", "5", "--max", "6"}, `{"id":"` + idLlama + `","replicas":5,"scaling":{"max":6}}`},
		"RollBackDeployment": {[]string{"rollback", "llama", "--to", "1"}, `{"id":"` + idLlama + `","revision":1}`},
		"PromoteDeployment":  {[]string{"promote", idLlama}, `{"id":"` + idLlama + `"}`},
		"DeleteDeployment":   {[]string{"rm", "llama", "--force"}, `{"id":"` + idLlama + `","force":true}`},
	} {
		if r := f.Run(append([]string{"deploy"}, c.args...)...); r.Code != 0 {
			t.Errorf("%s: %+v", op, r)
			continue
		}
		expect(t, sent(t, said[op]), c.want)
	}
	if r := f.Run("deploy", "scale", "llama", "many"); r.Code != cli.ExitUsage {
		t.Errorf("%+v", r)
	}
}

func TestWait(t *testing.T) {
	f := newServer(t)
	serving := strings.NewReplacer("UPDATING", "SERVING", `"target":2`, `"target":1`, "Revision 2 gets 10% of the requests.", "").Replace(detail)
	states := []string{detail, serving}
	f.Answer["Deployment"] = func(json.RawMessage) string {
		now := states[0]
		states = states[min(1, len(states)-1):]
		return `{"node":` + now + `}`
	}
	if r := f.Run("deploy", "wait", "llama"); r.Code != 0 || r.Out != "llama: serving\n" || !strings.Contains(r.Errors, "2 of 3 replicas ready: Revision 2 gets 10%") {
		t.Errorf("%+v", r)
	}
	only := strings.Replace(detail, `"target":2`, `"target":1`, 1) // no change, whose failures the manager counts
	for kind, n := range map[string]int{"REPLICA_FAILED": maxFailures, "ROLLED_BACK": 1} {
		now := map[string]string{"REPLICA_FAILED": only, "ROLLED_BACK": detail}[kind]
		f.Data("DeploymentEvents", `{"node":{"events":{"edges":[]}}}`)
		f.Answer["Deployment"] = func(json.RawMessage) string {
			var nodes []string
			for i := range n {
				nodes = append(nodes, `{"id":"x`+string(rune('0'+i))+`","createdAt":"2026-03-04T12:00:00Z","kind":"`+kind+`","metric":"","message":"out of memory"}`)
			}
			f.Data("DeploymentEvents", `{"node":{"events":`+clitest.Edges(nodes...)+`}}`)
			return `{"node":` + now + `}`
		}
		if r := f.Run("deploy", "wait", "llama"); r.Code != cli.ExitConflict || !strings.Contains(r.Errors, "out of memory") {
			t.Errorf("%s: %+v", kind, r)
		}
	}
}

func TestChooseReplica(t *testing.T) {
	at := func(id string, phase client.Enum, session bool) client.DeploymentReplica {
		r := client.DeploymentReplica{ID: id, Phase: phase}
		if session {
			r.Session = &client.SessionRef{ID: "s-" + id, Name: "n-" + id}
		}
		return r
	}
	list := []client.DeploymentReplica{at("aa", "STARTING", true), at("ab", "READY", true), at("ac", "READY", true), at("b", "READY", false)}
	for ref, want := range map[string]string{"": "ab", "aa": "aa", "n-ac": "ac"} {
		if r, err := choose(list, ref); err != nil || r.ID != want {
			t.Errorf("%q: %v, %v", ref, r, err)
		}
	}
	for _, bad := range []string{"a", "b", "c"} {
		if r, err := choose(list, bad); err == nil {
			t.Errorf("%q: %v", bad, r)
		}
	}
	if _, err := choose(nil, ""); err == nil {
		t.Error("no error without a replica")
	}
}

func TestKeys(t *testing.T) {
	f := newServer(t)
	key := `{"id":"k1","name":"ci","prefix":"bm_abc","apis":["CHAT"],"requestsPerMinute":60,"tokensPerMinute":0,"tokenBudget":1000,"usedRequests":3,"usedTokens":120,"createdAt":"2026-03-04T09:00:00Z","user":{"id":"u1","email":"ada@example.org"},"deployment":{"id":"d","name":"llama"}}`
	f.Data("DeploymentKeys", `{"deploymentKeys":`+clitest.Edges(key)+`}`)
	said := clitest.Record(f, map[string]string{
		"CreateDeploymentKey": `{"payload":{"key":` + key + `,"secret":"bm_abcdef"}}`, "UpdateDeploymentKey": `{"payload":{"key":` + key + `}}`, "RevokeDeploymentKey": `{"payload":{"key":` + key + `}}`,
	})
	if r := f.Run("deploy", "key", "create", "ci", "--deployment", "llama", "--token-budget", "1000", "--expires", "1d", "--api", "chat,embeddings"); r.Code != 0 || r.Out != "bm_abcdef\n" {
		t.Errorf("%+v", r)
	}
	expect(t, sent(t, said["CreateDeploymentKey"]), `{"name":"ci","deployment":"`+idLlama+`","apis":["CHAT","EMBEDDINGS"],"tokenBudget":1000,"expiresAt":"2026-03-05T12:00:00Z"}`)
	if r := f.Run("deploy", "key", "update", "ci", "--token-budget", "none"); r.Code != 0 {
		t.Errorf("%+v", r)
	}
	expect(t, sent(t, said["UpdateDeploymentKey"]), `{"id":"k1","tokenBudget":0}`)
	if r := f.Run("deploy", "key", "revoke", "bm_abcdef"); r.Code != 0 || sent(t, said["RevokeDeploymentKey"])["id"] != "k1" {
		t.Errorf("%+v", r)
	}
	if r := f.Run("deploy", "key", "ls"); r.Code != 0 || !slices.Contains(strings.Fields(r.Out), "requests/min,") || !strings.Contains(r.Out, "only chat") {
		t.Errorf("%+v", r)
	}
	if r := f.Run("deploy", "key", "update", "ci"); r.Code != cli.ExitUsage {
		t.Errorf("%+v", r)
	}
}

func TestRecords(t *testing.T) {
	f := newServer(t)
	record := `{"id":"r1","createdAt":"2026-03-04T12:00:00Z","path":"/v1/completions","revision":2,"status":200,"request":"{\"prompt\":\"one\n\u001b[31m two\"}","answer":"three",
		"truncated":false,"promptTokens":3,"completionTokens":1,"firstByteMs":20,"durationMs":1500,"user":{"id":"u","email":"ada@berth.example"}}`
	said := clitest.Record(f, map[string]string{
		"PromptRecords":       `{"node":{"promptRecords":` + clitest.Edges(record) + `}}`,
		"DeletePromptRecords": `{"payload":{"deleted":1}}`,
	})
	r := f.Run("deploy", "records", "llama", "--since", "2026-03-04T00:00:00Z", "--failed", "--contains", "one")
	if r.Code != 0 || !strings.Contains(r.Out, "3 + 1") || !strings.Contains(r.Out, "1.5 s") || !strings.Contains(r.Out, "ada@berth.example") || strings.Contains(r.Out, "\x1b") {
		t.Errorf("%+v", r)
	}
	var asked struct{ Where map[string]any }
	if err := json.Unmarshal([]byte(said["PromptRecords"]), &asked); err != nil {
		t.Fatal(err)
	}
	expect(t, asked.Where, `{"createdAtGTE":"2026-03-04T00:00:00Z","requestContainsFold":"one","statusGTE":400}`)
	if r := f.Run("deploy", "records", "llama", "-o", "json"); r.Code != 0 || !strings.Contains(r.Out, `"answer": "three"`) {
		t.Errorf("%+v", r)
	}
	if r := f.Run("deploy", "records", "llama", "--clear"); r.Code != cli.ExitUsage || f.Count("DeletePromptRecords") != 0 {
		t.Errorf("deleted without an answer: %+v", r)
	}
	if r := f.Run("deploy", "records", "llama", "--clear", "--yes"); r.Code != 0 || r.Out != "llama: 1 records deleted\n" {
		t.Errorf("%+v", r)
	}
	for _, bad := range [][]string{{"--limit", "0"}, {"--since", "soon"}, {"--clear", "--since", "1h"}} {
		if r := f.Run(append([]string{"deploy", "records", "llama"}, bad...)...); r.Code != cli.ExitUsage {
			t.Errorf("%v: %+v", bad, r)
		}
	}
}
