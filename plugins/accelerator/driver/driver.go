// Package driver implements an accelerator plugin from the parts that differ between vendors: how
// to find the hardware, what a container needs to use it, and how to measure it. The package
// itself handles the order of the calls, periodic scans, device masks, repeated requests, and
// hardware or vendors' programs that fail.
//
// A plugin's main is
//
//	func main() { driver.Serve(vendor{}) }
//
// Host reads the machine below the roots that the agent specifies, so that the same code runs on
// the file tree of a test.
package driver

import (
	"context"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// Driver is the part of a plugin that is specific to a vendor.
type Driver interface {
	// Describe returns the same description each time.
	Describe() *pb.DescribeResponse
	// Open parses settings: config_json, or the defaults if it is empty. It does not access
	// hardware. Its error is for the operator and names the setting.
	Open(h *Host, config []byte) (Machine, error)
}

// Machine is one host with one configuration. Scan and Sample can be called concurrently. Every
// call must end when its context ends.
type Machine interface {
	// Scan returns the devices in a stable order. Without hardware or driver it returns no devices
	// and no error. If it returns an error, the devices of the last successful scan stay visible
	// but cannot be allocated, and the error becomes the plugin's message (DeviceSnapshot.look),
	// also if no scan was successful yet. Scan must end soon after its context ends: a scan that
	// hangs blocks all later ones, and the agent kills the process after a minute.
	Scan(ctx context.Context) (*pb.DeviceSnapshot, error)
	// Edit returns the container edits for the allocated devices.
	Edit(ctx context.Context, r *Request) (*pb.PrepareResponse, error)
}

// Request is a validated request to prepare devices.
type Request struct {
	*pb.PrepareRequest
	Grants   []accelerator.Grant // in a stable order
	Snapshot *pb.DeviceSnapshot  // with the devices of the grants; must not be modified
}

// Optional interfaces of a Machine. Describe must announce their capabilities.

// Checker checks driver, device nodes and programs for Preflight.
type Checker interface {
	Check(ctx context.Context) []*pb.Check
}

// Sampler measures the devices of a snapshot.
type Sampler interface {
	Sample(ctx context.Context, s *pb.DeviceSnapshot) []*pb.Metric
}

// WorkloadSampler measures the usage of containers.
type WorkloadSampler interface {
	SampleWorkloads(ctx context.Context, s *pb.DeviceSnapshot, set *pb.WorkloadSet) []*pb.WorkloadMetrics
}

// Undoer undoes changes that Edit made on the host outside the request's work_dir.
type Undoer interface {
	// Undo can be called for an allocation that was never prepared or is undone already.
	Undo(ctx context.Context, allocation string, state []byte) error
	// Sweep undoes everything that does not belong to a live allocation, and describes it.
	Sweep(ctx context.Context, live []*pb.LiveAllocation) ([]string, error)
}

// Resumer resumes resources of live allocations other than devices, such as a server process. It is
// called before an Undoer's Sweep, which ends the resources of others, and returns the allocations
// that could not be resumed.
type Resumer interface {
	Resume(ctx context.Context, live []*pb.LiveAllocation) []*pb.RestoreProblem
}

// Serve is the main function of a plugin.
func Serve(d Driver) { accelerator.Serve(New(d)) }

// Checked returns the result of a check, with a message for each outcome.
func Checked(name string, ok bool, good, bad string) *pb.Check {
	if ok {
		return &pb.Check{Name: name, Ok: true, Detail: good}
	}
	return &pb.Check{Name: name, Detail: bad}
}

// Optional turns a failure of a check into a warning, for a component that the devices do not
// require.
func Optional(c *pb.Check) *pb.Check {
	c.Optional = true
	return c
}

// Tried returns the result of an attempt: the message good, or the error and its consequences.
func Tried(name string, err error, good, then string) *pb.Check {
	if err == nil {
		return Checked(name, true, good, "")
	}
	if then != "" {
		then = "; " + then
	}
	return Checked(name, false, "", Clean(err.Error(), 200)+then)
}
