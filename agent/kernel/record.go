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

// record is everything about a kernel that must survive the agent.
type record struct {
	request *agentpb.CreateKernelRequest
	state   *agentpb.KernelState
	network network.Attachment
	// What plugins want to see again, by plugin key.
	devices map[string][]byte
	stop    *stop
	// What has become of mounts of the request, by target.
	mounts map[string]mount.Change
}

// stop is the wish that a kernel ends.
type stop struct {
	Reason string        `json:"reason"`
	Grace  time.Duration `json:"grace"` // between SIGTERM and SIGKILL
	At     time.Time     `json:"at"`
}

// stored is a record's form on disk.
type stored struct {
	Version int                `json:"version"`
	Request json.RawMessage    `json:"request"`
	State   json.RawMessage    `json:"state"`
	Network network.Attachment `json:"network"`
	Devices map[string][]byte  `json:"devices,omitempty"`
	Stop    *stop              `json:"stop,omitempty"`

	Mounts map[string]mount.Change `json:"mounts,omitempty"`

	// Sealed are the environment and the script of the request, which lacks them,
	// until the container is there.
	Sealed []byte `json:"sealed,omitempty"`
}

const recordVersion = 1

// shut returns a request without the values that its user wants no one to read, and
// these sealed.
func shut(r *agentpb.CreateKernelRequest, keys *seal.Ring) (bare *agentpb.CreateKernelRequest, sealed []byte, err error) {
	kept := &agentpb.CreateKernelRequest{Environment: r.Environment, BootstrapScript: r.BootstrapScript}
	text, err := proto.Marshal(kept)
	if err != nil || len(text) == 0 {
		return r, nil, err
	}
	bare = proto.Clone(r).(*agentpb.CreateKernelRequest)
	bare.Environment, bare.BootstrapScript = nil, ""
	return bare, keys.Seal(seal.KernelSecrets, text), nil
}

// unshut puts them back.
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
	// A record from before states had these has them in its request.
	r.state.SessionName, r.state.ProjectId, r.state.UserId = r.request.SessionName, r.request.ProjectId, r.request.UserId
	return r, nil
}

// save writes the record, complete or not at all.
func (k *Kernel) save() error {
	text, err := k.rec.marshal(k.m.keys)
	if err != nil {
		return err
	}
	return wholefile.Write(filepath.Join(k.m.dir(k.ID), recordFile), text)
}

const recordFile = "record.json"

// change edits the state, saves it, makes it true and tells it. When it cannot
// be saved, it has not changed.
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

// tell is change for what an agent would find out again after a restart, so
// that a full disk is no reason to hide it.
func (k *Kernel) tell(edit func(*agentpb.KernelState)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	edit(k.rec.state)
	if err := k.save(); err != nil {
		k.m.cfg.Logger.Error("record not written", "kernel", k.ID, "error", err)
	}
	k.m.cfg.OnChange(proto.Clone(k.rec.state).(*agentpb.KernelState))
}
