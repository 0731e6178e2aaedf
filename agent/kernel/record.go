package kernel

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/mount"
	"github.com/berthhq/berth/agent/network"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/wholefile"
)

// record is the part of a kernel's state that must survive the agent.
type record struct {
	request *agentpb.CreateKernelRequest
	state   *agentpb.KernelState
	network network.Attachment
	// devices has the states that plugins need for later calls, by plugin key.
	devices map[string][]byte
	stop    *stop
	// mounts are the changes of the request's mounts since the start, by target.
	mounts map[string]mount.Change
}

// stop is a request to end a kernel.
type stop struct {
	Reason string        `json:"reason"`
	Grace  time.Duration `json:"grace"` // between SIGTERM and SIGKILL
	At     time.Time     `json:"at"`
}

// stored is the format of a record on disk.
type stored struct {
	Version int                `json:"version"`
	Request json.RawMessage    `json:"request"`
	State   json.RawMessage    `json:"state"`
	Network network.Attachment `json:"network"`
	Devices map[string][]byte  `json:"devices,omitempty"`
	Stop    *stop              `json:"stop,omitempty"`

	Mounts map[string]mount.Change `json:"mounts,omitempty"`

	// Sealed are the encrypted environment, script and secret of the session, which Request lacks,
	// until the container exists.
	Sealed []byte `json:"sealed,omitempty"`
}

const recordVersion = 1

// shut returns a copy of the request without its secret values, and these values encrypted.
func shut(r *agentpb.CreateKernelRequest, keys *seal.Ring) (bare *agentpb.CreateKernelRequest, sealed []byte, err error) {
	kept := &agentpb.CreateKernelRequest{Environment: r.Environment, BootstrapScript: r.BootstrapScript}
	if secret := r.GetCluster().GetSecret(); len(secret) > 0 {
		kept.Cluster = &agentpb.KernelCluster{Secret: secret}
	}
	text, err := proto.Marshal(kept)
	if err != nil || len(text) == 0 {
		return r, nil, err
	}
	bare = proto.Clone(r).(*agentpb.CreateKernelRequest)
	bare.Environment, bare.BootstrapScript = nil, ""
	if bare.Cluster != nil {
		bare.Cluster.Secret = nil
	}
	return bare, keys.Seal(seal.KernelSecrets, text), nil
}

// unshut restores the secret values.
func unshut(r *agentpb.CreateKernelRequest, sealed []byte, keys *seal.Ring) error {
	if len(sealed) == 0 {
		return nil
	}
	text, err := keys.Open(seal.KernelSecrets, sealed)
	if err != nil {
		return err
	}
	kept := &agentpb.CreateKernelRequest{}
	if err := proto.Unmarshal(text, kept); err != nil {
		return err
	}
	r.Environment, r.BootstrapScript = kept.Environment, kept.BootstrapScript
	if r.Cluster != nil {
		r.Cluster.Secret = kept.GetCluster().GetSecret()
	}
	return nil
}

func (r *record) marshal(keys *seal.Ring) ([]byte, error) {
	bare, sealed, err := shut(r.request, keys)
	if err != nil {
		return nil, err
	}
	if r.state.Phase > agentpb.KernelState_CREATING {
		sealed = nil // the container has them
	}
	request, err := protojson.Marshal(bare)
	if err != nil {
		return nil, err
	}
	state, err := protojson.Marshal(r.state)
	if err != nil {
		return nil, err
	}
	return json.Marshal(stored{recordVersion, request, state, r.network, r.devices, r.stop, r.mounts, sealed})
}

func unmarshalRecord(text []byte, keys *seal.Ring) (*record, error) {
	var s stored
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	if s.Version != recordVersion {
		return nil, fmt.Errorf("version %d is not known", s.Version)
	}
	r := &record{request: &agentpb.CreateKernelRequest{}, state: &agentpb.KernelState{}, network: s.Network, devices: s.Devices, stop: s.Stop, mounts: s.Mounts}
	lenient := protojson.UnmarshalOptions{DiscardUnknown: true}
	if err := lenient.Unmarshal(s.Request, r.request); err != nil {
		return nil, err
	}
	if err := unshut(r.request, s.Sealed, keys); err != nil {
		return nil, err
	}
	if err := lenient.Unmarshal(s.State, r.state); err != nil {
		return nil, err
	}
	// Records of older agents have these values in the request only.
	r.state.SessionName, r.state.ProjectId, r.state.UserId = r.request.SessionName, r.request.ProjectId, r.request.UserId
	return r, nil
}

// save writes the record atomically.
func (k *Kernel) save() error {
	text, err := k.rec.marshal(k.m.keys)
	if err != nil {
		return err
	}
	return wholefile.Write(filepath.Join(k.m.dir(k.ID), recordFile), text)
}

const recordFile = "record.json"

// change edits the state, saves and publishes it. If saving fails, the state does not change.
func (k *Kernel) change(edit func(*agentpb.KernelState), saved func()) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.rec.state
	k.rec.state = proto.Clone(before).(*agentpb.KernelState)
	edit(k.rec.state)
	if err := k.save(); err != nil {
		k.rec.state = before
		return fmt.Errorf("write record of kernel %s: %w", k.ID, err)
	}
	saved()
	k.m.cfg.OnChange(proto.Clone(k.rec.state).(*agentpb.KernelState))
	return nil
}

// publish is change without the requirement to save: the next agent could determine the new state
// itself. So managers need not wait for the disk, and a full disk does not hide the change.
func (k *Kernel) publish(edit func(*agentpb.KernelState)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	edit(k.rec.state)
	k.m.cfg.OnChange(proto.Clone(k.rec.state).(*agentpb.KernelState))
	if err := k.save(); err != nil {
		k.m.cfg.Logger.Error("record not written", "kernel", k.ID, "error", err)
	}
}
