package kernel

import (
	"encoding/base64"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/seal"
)

func TestRecordsKeepSecretsSealed(t *testing.T) {
	secret := base64.StdEncoding.EncodeToString([]byte("canary of the session"))
	keys, err := seal.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	rec := &record{
		request: &agentpb.CreateKernelRequest{KernelId: "k", Environment: map[string]string{"TOKEN": "canary"}, BootstrapScript: "echo canary",
			Cluster: &agentpb.KernelCluster{Secret: []byte("canary of the session"), Members: []*agentpb.KernelMember{{Hostname: "main", Slots: 1}, {Hostname: "sub1", Slots: 1}}}},
		state: &agentpb.KernelState{Phase: agentpb.KernelState_CREATING},
	}
	text, err := rec.marshal(keys)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "canary") || strings.Contains(string(text), "TOKEN") || strings.Contains(string(text), secret) {
		t.Errorf("the record shows the environment or the script: %s", text)
	}
	again, err := unmarshalRecord(text, keys)
	if err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(again.request, rec.request) {
		t.Errorf("read %v, want %v", again.request, rec.request)
	}

	other, err := seal.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unmarshalRecord(text, other); err == nil {
		t.Error("the keys of another machine open the record")
	}

	rec.state.Phase = agentpb.KernelState_RUNNING
	if text, err = rec.marshal(keys); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "sealed") || strings.Contains(string(text), "canary") || strings.Contains(string(text), secret) {
		t.Errorf("the record of a container that runs still has the environment: %s", text)
	}
}
