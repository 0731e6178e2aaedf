// Package driver makes a plugin of what differs between vendors: how hardware is
// found, what a container needs of it and how busy it is. Everything that is the
// same for all is here: the order of the calls, looking again and again, masks,
// repeated requests, what happens when hardware or a vendor's program misbehaves.
//
// A plugin's main is
//
//	func main() { driver.Serve(vendor{}) }
//
// Host reads the machine below the roots that the agent names, so that the same
// code runs on a tree made for a test.
package driver

import (
	"context"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// Driver is one vendor's.
type Driver interface {
	// Describe answers the first call; the answer is the same every time.
	Describe() *pb.DescribeResponse
	// Open takes settings: config_json, or nothing for the defaults. It does not
	// look at hardware. Its error is the operator's: it names the setting.
	Open(h *Host, config []byte) (Machine, error)
}

// Machine is one host under one configuration. Scan and Sample may be called at
// the same time; every call ends with its context.
type Machine interface {
	// Scan lists the devices, in a stable order. Without hardware or driver the
	// list is empty and there is no error. With an error nothing new is known:
	// the devices of the last good look stay visible and are given to no one. The
	// error is the message of the plugin (DeviceSnapshot.look), also when no look was
	// good yet. Scan has to end soon after its context: a look that does not keeps
	// all later ones from starting, and the agent ends the process after a minute.
	Scan(ctx context.Context) (*pb.DeviceSnapshot, error)
	// Edit says what a container needs to use what it was given.
	Edit(ctx context.Context, r *Request) (*pb.PrepareResponse, error)
}

// Request is a request to prepare, looked up and understood.
type Request struct {
	*pb.PrepareRequest
	Grants   []accelerator.Grant // in a stable order
	Snapshot *pb.DeviceSnapshot  // of which the grants are; not to be changed
}

// What a Machine may do beside. Capabilities say so in Describe.

// Checker looks at driver, device nodes and programs, for Preflight.
type Checker interface {
	Check(ctx context.Context) []*pb.Check
}

// Sampler measures the devices of a snapshot.
type Sampler interface {
	Sample(ctx context.Context, s *pb.DeviceSnapshot) []*pb.Metric
}

// WorkloadSampler measures what containers use.
type WorkloadSampler interface {
	SampleWorkloads(ctx context.Context, s *pb.DeviceSnapshot, set *pb.WorkloadSet) []*pb.WorkloadMetrics
}

// Undoer takes back what Edit changed on the host beyond the request's work_dir.
type Undoer interface {
	// Undo may be called for what was never prepared, or is undone already.
	Undo(ctx context.Context, allocation string, state []byte) error
	// Sweep undoes whatever belongs to none of the live allocations, and says what.
	Sweep(ctx context.Context, live []*pb.LiveAllocation) ([]string, error)
}

// Resumer takes up what live allocations use beside their devices, such as a server
// that is started for them. It is asked before an Undoer's Sweep, which ends the
// others', and says what could not be taken up.
type Resumer interface {
	Resume(ctx context.Context, live []*pb.LiveAllocation) []*pb.RestoreProblem
}

// Serve is the main of a plugin.
func Serve(d Driver) { accelerator.Serve(New(d)) }
