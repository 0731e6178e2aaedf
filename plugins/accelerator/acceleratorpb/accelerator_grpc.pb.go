// The contract between an agent and an accelerator plugin.
//
// A plugin is one program that knows one family of hardware: which devices a
// node has, how a container gets at them, how busy and how healthy they are.
// The agent does everything else: allocations, records on disk, deadlines
// and retries. A plugin has no authority. Killing it at any moment loses
// nothing, and a plugin that has just started can serve every call after it
// was configured and has received the live allocations.
//
// Versions
//   The package is the version: berth.accelerator.v1 is go-plugin's application
//   protocol 1. The host offers every number it speaks in the environment
//   variable PLUGIN_PROTOCOL_VERSIONS, "1,2". The plugin chooses the highest one
//   that it also speaks, prints it in the second field of its handshake line, and
//   serves that package. Without a common number it prints its own highest, and the
//   host refuses it with an error that names the numbers of both sides.
//   Within a version, messages only grow: fields, enumerators and methods are
//   added, and none changes its number or its meaning. Each side ignores unknown
//   fields. Additions that the other side must understand come with a
//   Capability, or with a new version. Field numbers 100 to 199 are never used
//   here: they are for a vendor's own fields.
//
// Transport: the agent starts the program and speaks this service over the
// unix socket that hashicorp/go-plugin negotiates (cookie
// BERTH_ACCELERATOR_PLUGIN). A Go vendor calls
// accelerator.Serve; any other language prints go-plugin's handshake line and
// serves this file.
//
// Life of a plugin
//   1. Describe: the plugin's identity and slots. It must not touch the
//      hardware. This is the first call after every start.
//   2. Configure: settings, file-system roots, masked devices. It can be
//      repeated at any time; the last call applies. A plugin with the capability
//      RECONFIGURE scans the hardware again before it answers; a plugin without it
//      is restarted instead. Before the first Configure, all calls except Describe
//      answer FAILED_PRECONDITION.
//   3. Restore: all live allocations of the node, in one call. The plugin undoes
//      all other side effects that it finds, because an earlier process has
//      leaked them.
//   4. WatchDevices, WatchHealth and the metric streams stay open for the life
//      of both sides. WatchDevices sends its first message at once.
//   5. SIGTERM, or the agent's death, ends the program within 5 seconds.
//
// Life of an allocation
//   1. The manager chooses concrete devices and amounts from the snapshot.
//   2. Prepare turns them into container edits. Repeatable: the same
//      allocation id with the same devices gives the same answer, and with other
//      devices ALREADY_EXISTS.
//   3. The container runs. WatchWorkloadMetrics reports its usage.
//   4. Unprepare undoes Prepare's side effects. Repeatable: an unknown id is
//      answered OK.
//
// Life of a device
//   A device is in the snapshot while it exists. A device that must not be used
//   (too old, broken, masked by the vendor) stays visible with allocatable
//   unset and the reasons. A device that disappears is missing from the next
//   snapshot and is reported by a LOST health event, both within 5 seconds.
//
//   A file that cannot be read affects one device, which gets the reason, and no
//   other. A vendor's program that hangs, fails or prints invalid output affects
//   the devices that only it reports, until it recovers; calls keep their
//   deadlines. If no device is left to have the reason, DeviceSnapshot.look has it.
//   Prepare names devices by id, not by revision: an id never refers to another
//   device later, and a removed device is NOT_FOUND.
//
// Without hardware or driver a plugin is healthy and its snapshot is empty.
//
// Amounts are decimal strings without sign or exponent: "2", "0.5",
// "85899345920". COUNT, BYTES and UNIQUE are whole, SHARES have at
// most three decimals. The slot's name determines the scale: SHARES end in
// ".shares", BYTES in ".mem", the others in neither.
//
// One amount under several names
//   A device that can be allocated in parts by shares and by bytes has a slot for
//   each, and both are `unified`: they are names of one amount, and the capacity of
//   each is the whole device. Parts under all names add up to one device: half by
//   shares leaves half of the bytes. Unified slots do not exclude each other and are
//   not UNIQUE; exclusive_with separates whole devices from parts. Two kernels can
//   request parts of one device under different names, so Prepare limits each to its
//   part of its own slot's capacity, and parts that add up to one device never get
//   more memory than it has.
//
// Errors: INVALID_ARGUMENT a malformed request or configuration, NOT_FOUND a
// device that does not exist, FAILED_PRECONDITION a device that is not
// allocatable, or a call before Configure, ALREADY_EXISTS an allocation id with
// other devices, RESOURCE_EXHAUSTED no room for a side effect, UNAVAILABLE try
// again, UNIMPLEMENTED a capability that was not declared. The message names
// the device or field at fault.
//
// Every unary call has a deadline, 10 seconds by default and 60 for Prepare.

// Code generated by protoc-gen-go-grpc. DO NOT EDIT.
// versions:
// - protoc-gen-go-grpc v1.6.2
// - protoc             v3.21.12
// source: plugins/accelerator/acceleratorpb/accelerator.proto

package acceleratorpb

import (
	context "context"
	grpc "google.golang.org/grpc"
	codes "google.golang.org/grpc/codes"
	status "google.golang.org/grpc/status"
)

// This is a compile-time assertion to ensure that this generated file
// is compatible with the grpc package it is being compiled against.
// Requires gRPC-Go v1.64.0 or later.
const _ = grpc.SupportPackageIsVersion9

const (
	Accelerator_Describe_FullMethodName             = "/berth.accelerator.v1.Accelerator/Describe"
	Accelerator_Configure_FullMethodName            = "/berth.accelerator.v1.Accelerator/Configure"
	Accelerator_Preflight_FullMethodName            = "/berth.accelerator.v1.Accelerator/Preflight"
	Accelerator_WatchDevices_FullMethodName         = "/berth.accelerator.v1.Accelerator/WatchDevices"
	Accelerator_Prepare_FullMethodName              = "/berth.accelerator.v1.Accelerator/Prepare"
	Accelerator_Unprepare_FullMethodName            = "/berth.accelerator.v1.Accelerator/Unprepare"
	Accelerator_Restore_FullMethodName              = "/berth.accelerator.v1.Accelerator/Restore"
	Accelerator_WatchNodeMetrics_FullMethodName     = "/berth.accelerator.v1.Accelerator/WatchNodeMetrics"
	Accelerator_WatchWorkloadMetrics_FullMethodName = "/berth.accelerator.v1.Accelerator/WatchWorkloadMetrics"
	Accelerator_WatchHealth_FullMethodName          = "/berth.accelerator.v1.Accelerator/WatchHealth"
)

// AcceleratorClient is the client API for Accelerator service.
//
// For semantics around ctx use and closing/ending streaming RPCs, please refer to https://pkg.go.dev/google.golang.org/grpc/?tab=doc#ClientConn.NewStream.
type AcceleratorClient interface {
	Describe(ctx context.Context, in *DescribeRequest, opts ...grpc.CallOption) (*DescribeResponse, error)
	Configure(ctx context.Context, in *ConfigureRequest, opts ...grpc.CallOption) (*ConfigureResponse, error)
	// Preflight checks driver, device nodes and tools and reports for people. The agent
	// calls it after every start and whenever Look changes, and shows the answer.
	Preflight(ctx context.Context, in *PreflightRequest, opts ...grpc.CallOption) (*PreflightResponse, error)
	// WatchDevices sends the whole snapshot at once and again on every change.
	WatchDevices(ctx context.Context, in *WatchDevicesRequest, opts ...grpc.CallOption) (grpc.ServerStreamingClient[DeviceSnapshot], error)
	Prepare(ctx context.Context, in *PrepareRequest, opts ...grpc.CallOption) (*PrepareResponse, error)
	Unprepare(ctx context.Context, in *UnprepareRequest, opts ...grpc.CallOption) (*UnprepareResponse, error)
	Restore(ctx context.Context, in *RestoreRequest, opts ...grpc.CallOption) (*RestoreResponse, error)
	WatchNodeMetrics(ctx context.Context, in *WatchNodeMetricsRequest, opts ...grpc.CallOption) (grpc.ServerStreamingClient[NodeSample], error)
	// WatchWorkloadMetrics measures the containers that the caller names. Each
	// request replaces the set; samples follow at its interval. Needs
	// Capability WORKLOAD_METRICS.
	WatchWorkloadMetrics(ctx context.Context, opts ...grpc.CallOption) (grpc.BidiStreamingClient[WorkloadSet, WorkloadSample], error)
	// WatchHealth sends one event per device that is not healthy, then changes.
	// Needs Capability HEALTH.
	WatchHealth(ctx context.Context, in *WatchHealthRequest, opts ...grpc.CallOption) (grpc.ServerStreamingClient[HealthEvent], error)
}

type acceleratorClient struct {
	cc grpc.ClientConnInterface
}

func NewAcceleratorClient(cc grpc.ClientConnInterface) AcceleratorClient {
	return &acceleratorClient{cc}
}

func (c *acceleratorClient) Describe(ctx context.Context, in *DescribeRequest, opts ...grpc.CallOption) (*DescribeResponse, error) {
	cOpts := append([]grpc.CallOption{grpc.StaticMethod()}, opts...)
	out := new(DescribeResponse)
	err := c.cc.Invoke(ctx, Accelerator_Describe_FullMethodName, in, out, cOpts...)
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (c *acceleratorClient) Configure(ctx context.Context, in *ConfigureRequest, opts ...grpc.CallOption) (*ConfigureResponse, error) {
	cOpts := append([]grpc.CallOption{grpc.StaticMethod()}, opts...)
	out := new(ConfigureResponse)
	err := c.cc.Invoke(ctx, Accelerator_Configure_FullMethodName, in, out, cOpts...)
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (c *acceleratorClient) Preflight(ctx context.Context, in *PreflightRequest, opts ...grpc.CallOption) (*PreflightResponse, error) {
	cOpts := append([]grpc.CallOption{grpc.StaticMethod()}, opts...)
	out := new(PreflightResponse)
	err := c.cc.Invoke(ctx, Accelerator_Preflight_FullMethodName, in, out, cOpts...)
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (c *acceleratorClient) WatchDevices(ctx context.Context, in *WatchDevicesRequest, opts ...grpc.CallOption) (grpc.ServerStreamingClient[DeviceSnapshot], error) {
	cOpts := append([]grpc.CallOption{grpc.StaticMethod()}, opts...)
	stream, err := c.cc.NewStream(ctx, &Accelerator_ServiceDesc.Streams[0], Accelerator_WatchDevices_FullMethodName, cOpts...)
	if err != nil {
		return nil, err
	}
	x := &grpc.GenericClientStream[WatchDevicesRequest, DeviceSnapshot]{ClientStream: stream}
	if err := x.ClientStream.SendMsg(in); err != nil {
		return nil, err
	}
	if err := x.ClientStream.CloseSend(); err != nil {
		return nil, err
	}
	return x, nil
}

// This type alias is provided for backwards compatibility with existing code that references the prior non-generic stream type by name.
type Accelerator_WatchDevicesClient = grpc.ServerStreamingClient[DeviceSnapshot]

func (c *acceleratorClient) Prepare(ctx context.Context, in *PrepareRequest, opts ...grpc.CallOption) (*PrepareResponse, error) {
	cOpts := append([]grpc.CallOption{grpc.StaticMethod()}, opts...)
	out := new(PrepareResponse)
	err := c.cc.Invoke(ctx, Accelerator_Prepare_FullMethodName, in, out, cOpts...)
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (c *acceleratorClient) Unprepare(ctx context.Context, in *UnprepareRequest, opts ...grpc.CallOption) (*UnprepareResponse, error) {
	cOpts := append([]grpc.CallOption{grpc.StaticMethod()}, opts...)
	out := new(UnprepareResponse)
	err := c.cc.Invoke(ctx, Accelerator_Unprepare_FullMethodName, in, out, cOpts...)
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (c *acceleratorClient) Restore(ctx context.Context, in *RestoreRequest, opts ...grpc.CallOption) (*RestoreResponse, error) {
	cOpts := append([]grpc.CallOption{grpc.StaticMethod()}, opts...)
	out := new(RestoreResponse)
	err := c.cc.Invoke(ctx, Accelerator_Restore_FullMethodName, in, out, cOpts...)
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (c *acceleratorClient) WatchNodeMetrics(ctx context.Context, in *WatchNodeMetricsRequest, opts ...grpc.CallOption) (grpc.ServerStreamingClient[NodeSample], error) {
	cOpts := append([]grpc.CallOption{grpc.StaticMethod()}, opts...)
	stream, err := c.cc.NewStream(ctx, &Accelerator_ServiceDesc.Streams[1], Accelerator_WatchNodeMetrics_FullMethodName, cOpts...)
	if err != nil {
		return nil, err
	}
	x := &grpc.GenericClientStream[WatchNodeMetricsRequest, NodeSample]{ClientStream: stream}
	if err := x.ClientStream.SendMsg(in); err != nil {
		return nil, err
	}
	if err := x.ClientStream.CloseSend(); err != nil {
		return nil, err
	}
	return x, nil
}

// This type alias is provided for backwards compatibility with existing code that references the prior non-generic stream type by name.
type Accelerator_WatchNodeMetricsClient = grpc.ServerStreamingClient[NodeSample]

func (c *acceleratorClient) WatchWorkloadMetrics(ctx context.Context, opts ...grpc.CallOption) (grpc.BidiStreamingClient[WorkloadSet, WorkloadSample], error) {
	cOpts := append([]grpc.CallOption{grpc.StaticMethod()}, opts...)
	stream, err := c.cc.NewStream(ctx, &Accelerator_ServiceDesc.Streams[2], Accelerator_WatchWorkloadMetrics_FullMethodName, cOpts...)
	if err != nil {
		return nil, err
	}
	x := &grpc.GenericClientStream[WorkloadSet, WorkloadSample]{ClientStream: stream}
	return x, nil
}

// This type alias is provided for backwards compatibility with existing code that references the prior non-generic stream type by name.
type Accelerator_WatchWorkloadMetricsClient = grpc.BidiStreamingClient[WorkloadSet, WorkloadSample]

func (c *acceleratorClient) WatchHealth(ctx context.Context, in *WatchHealthRequest, opts ...grpc.CallOption) (grpc.ServerStreamingClient[HealthEvent], error) {
	cOpts := append([]grpc.CallOption{grpc.StaticMethod()}, opts...)
	stream, err := c.cc.NewStream(ctx, &Accelerator_ServiceDesc.Streams[3], Accelerator_WatchHealth_FullMethodName, cOpts...)
	if err != nil {
		return nil, err
	}
	x := &grpc.GenericClientStream[WatchHealthRequest, HealthEvent]{ClientStream: stream}
	if err := x.ClientStream.SendMsg(in); err != nil {
		return nil, err
	}
	if err := x.ClientStream.CloseSend(); err != nil {
		return nil, err
	}
	return x, nil
}

// This type alias is provided for backwards compatibility with existing code that references the prior non-generic stream type by name.
type Accelerator_WatchHealthClient = grpc.ServerStreamingClient[HealthEvent]

// AcceleratorServer is the server API for Accelerator service.
// All implementations must embed UnimplementedAcceleratorServer
// for forward compatibility.
type AcceleratorServer interface {
	Describe(context.Context, *DescribeRequest) (*DescribeResponse, error)
	Configure(context.Context, *ConfigureRequest) (*ConfigureResponse, error)
	// Preflight checks driver, device nodes and tools and reports for people. The agent
	// calls it after every start and whenever Look changes, and shows the answer.
	Preflight(context.Context, *PreflightRequest) (*PreflightResponse, error)
	// WatchDevices sends the whole snapshot at once and again on every change.
	WatchDevices(*WatchDevicesRequest, grpc.ServerStreamingServer[DeviceSnapshot]) error
	Prepare(context.Context, *PrepareRequest) (*PrepareResponse, error)
	Unprepare(context.Context, *UnprepareRequest) (*UnprepareResponse, error)
	Restore(context.Context, *RestoreRequest) (*RestoreResponse, error)
	WatchNodeMetrics(*WatchNodeMetricsRequest, grpc.ServerStreamingServer[NodeSample]) error
	// WatchWorkloadMetrics measures the containers that the caller names. Each
	// request replaces the set; samples follow at its interval. Needs
	// Capability WORKLOAD_METRICS.
	WatchWorkloadMetrics(grpc.BidiStreamingServer[WorkloadSet, WorkloadSample]) error
	// WatchHealth sends one event per device that is not healthy, then changes.
	// Needs Capability HEALTH.
	WatchHealth(*WatchHealthRequest, grpc.ServerStreamingServer[HealthEvent]) error
	mustEmbedUnimplementedAcceleratorServer()
}

// UnimplementedAcceleratorServer must be embedded to have
// forward compatible implementations.
//
// NOTE: this should be embedded by value instead of pointer to avoid a nil
// pointer dereference when methods are called.
type UnimplementedAcceleratorServer struct{}

func (UnimplementedAcceleratorServer) Describe(context.Context, *DescribeRequest) (*DescribeResponse, error) {
	return nil, status.Error(codes.Unimplemented, "method Describe not implemented")
}
func (UnimplementedAcceleratorServer) Configure(context.Context, *ConfigureRequest) (*ConfigureResponse, error) {
	return nil, status.Error(codes.Unimplemented, "method Configure not implemented")
}
func (UnimplementedAcceleratorServer) Preflight(context.Context, *PreflightRequest) (*PreflightResponse, error) {
	return nil, status.Error(codes.Unimplemented, "method Preflight not implemented")
}
func (UnimplementedAcceleratorServer) WatchDevices(*WatchDevicesRequest, grpc.ServerStreamingServer[DeviceSnapshot]) error {
	return status.Error(codes.Unimplemented, "method WatchDevices not implemented")
}
func (UnimplementedAcceleratorServer) Prepare(context.Context, *PrepareRequest) (*PrepareResponse, error) {
	return nil, status.Error(codes.Unimplemented, "method Prepare not implemented")
}
func (UnimplementedAcceleratorServer) Unprepare(context.Context, *UnprepareRequest) (*UnprepareResponse, error) {
	return nil, status.Error(codes.Unimplemented, "method Unprepare not implemented")
}
func (UnimplementedAcceleratorServer) Restore(context.Context, *RestoreRequest) (*RestoreResponse, error) {
	return nil, status.Error(codes.Unimplemented, "method Restore not implemented")
}
func (UnimplementedAcceleratorServer) WatchNodeMetrics(*WatchNodeMetricsRequest, grpc.ServerStreamingServer[NodeSample]) error {
	return status.Error(codes.Unimplemented, "method WatchNodeMetrics not implemented")
}
func (UnimplementedAcceleratorServer) WatchWorkloadMetrics(grpc.BidiStreamingServer[WorkloadSet, WorkloadSample]) error {
	return status.Error(codes.Unimplemented, "method WatchWorkloadMetrics not implemented")
}
func (UnimplementedAcceleratorServer) WatchHealth(*WatchHealthRequest, grpc.ServerStreamingServer[HealthEvent]) error {
	return status.Error(codes.Unimplemented, "method WatchHealth not implemented")
}
func (UnimplementedAcceleratorServer) mustEmbedUnimplementedAcceleratorServer() {}
func (UnimplementedAcceleratorServer) testEmbeddedByValue()                     {}

// UnsafeAcceleratorServer may be embedded to opt out of forward compatibility for this service.
// Use of this interface is not recommended, as added methods to AcceleratorServer will
// result in compilation errors.
type UnsafeAcceleratorServer interface {
	mustEmbedUnimplementedAcceleratorServer()
}

func RegisterAcceleratorServer(s grpc.ServiceRegistrar, srv AcceleratorServer) {
	// If the following call panics, it indicates UnimplementedAcceleratorServer was
	// embedded by pointer and is nil.  This will cause panics if an
	// unimplemented method is ever invoked, so we test this at initialization
	// time to prevent it from happening at runtime later due to I/O.
	if t, ok := srv.(interface{ testEmbeddedByValue() }); ok {
		t.testEmbeddedByValue()
	}
	s.RegisterService(&Accelerator_ServiceDesc, srv)
}

func _Accelerator_Describe_Handler(srv interface{}, ctx context.Context, dec func(interface{}) error, interceptor grpc.UnaryServerInterceptor) (interface{}, error) {
	in := new(DescribeRequest)
	if err := dec(in); err != nil {
		return nil, err
	}
	if interceptor == nil {
		return srv.(AcceleratorServer).Describe(ctx, in)
	}
	info := &grpc.UnaryServerInfo{
		Server:     srv,
		FullMethod: Accelerator_Describe_FullMethodName,
	}
	handler := func(ctx context.Context, req interface{}) (interface{}, error) {
		return srv.(AcceleratorServer).Describe(ctx, req.(*DescribeRequest))
	}
	return interceptor(ctx, in, info, handler)
}

func _Accelerator_Configure_Handler(srv interface{}, ctx context.Context, dec func(interface{}) error, interceptor grpc.UnaryServerInterceptor) (interface{}, error) {
	in := new(ConfigureRequest)
	if err := dec(in); err != nil {
		return nil, err
	}
	if interceptor == nil {
		return srv.(AcceleratorServer).Configure(ctx, in)
	}
	info := &grpc.UnaryServerInfo{
		Server:     srv,
		FullMethod: Accelerator_Configure_FullMethodName,
	}
	handler := func(ctx context.Context, req interface{}) (interface{}, error) {
		return srv.(AcceleratorServer).Configure(ctx, req.(*ConfigureRequest))
	}
	return interceptor(ctx, in, info, handler)
}

func _Accelerator_Preflight_Handler(srv interface{}, ctx context.Context, dec func(interface{}) error, interceptor grpc.UnaryServerInterceptor) (interface{}, error) {
	in := new(PreflightRequest)
	if err := dec(in); err != nil {
		return nil, err
	}
	if interceptor == nil {
		return srv.(AcceleratorServer).Preflight(ctx, in)
	}
	info := &grpc.UnaryServerInfo{
		Server:     srv,
		FullMethod: Accelerator_Preflight_FullMethodName,
	}
	handler := func(ctx context.Context, req interface{}) (interface{}, error) {
		return srv.(AcceleratorServer).Preflight(ctx, req.(*PreflightRequest))
	}
	return interceptor(ctx, in, info, handler)
}

func _Accelerator_WatchDevices_Handler(srv interface{}, stream grpc.ServerStream) error {
	m := new(WatchDevicesRequest)
	if err := stream.RecvMsg(m); err != nil {
		return err
	}
	return srv.(AcceleratorServer).WatchDevices(m, &grpc.GenericServerStream[WatchDevicesRequest, DeviceSnapshot]{ServerStream: stream})
}

// This type alias is provided for backwards compatibility with existing code that references the prior non-generic stream type by name.
type Accelerator_WatchDevicesServer = grpc.ServerStreamingServer[DeviceSnapshot]

func _Accelerator_Prepare_Handler(srv interface{}, ctx context.Context, dec func(interface{}) error, interceptor grpc.UnaryServerInterceptor) (interface{}, error) {
	in := new(PrepareRequest)
	if err := dec(in); err != nil {
		return nil, err
	}
	if interceptor == nil {
		return srv.(AcceleratorServer).Prepare(ctx, in)
	}
	info := &grpc.UnaryServerInfo{
		Server:     srv,
		FullMethod: Accelerator_Prepare_FullMethodName,
	}
	handler := func(ctx context.Context, req interface{}) (interface{}, error) {
		return srv.(AcceleratorServer).Prepare(ctx, req.(*PrepareRequest))
	}
	return interceptor(ctx, in, info, handler)
}

func _Accelerator_Unprepare_Handler(srv interface{}, ctx context.Context, dec func(interface{}) error, interceptor grpc.UnaryServerInterceptor) (interface{}, error) {
	in := new(UnprepareRequest)
	if err := dec(in); err != nil {
		return nil, err
	}
	if interceptor == nil {
		return srv.(AcceleratorServer).Unprepare(ctx, in)
	}
	info := &grpc.UnaryServerInfo{
		Server:     srv,
		FullMethod: Accelerator_Unprepare_FullMethodName,
	}
	handler := func(ctx context.Context, req interface{}) (interface{}, error) {
		return srv.(AcceleratorServer).Unprepare(ctx, req.(*UnprepareRequest))
	}
	return interceptor(ctx, in, info, handler)
}

func _Accelerator_Restore_Handler(srv interface{}, ctx context.Context, dec func(interface{}) error, interceptor grpc.UnaryServerInterceptor) (interface{}, error) {
	in := new(RestoreRequest)
	if err := dec(in); err != nil {
		return nil, err
	}
	if interceptor == nil {
		return srv.(AcceleratorServer).Restore(ctx, in)
	}
	info := &grpc.UnaryServerInfo{
		Server:     srv,
		FullMethod: Accelerator_Restore_FullMethodName,
	}
	handler := func(ctx context.Context, req interface{}) (interface{}, error) {
		return srv.(AcceleratorServer).Restore(ctx, req.(*RestoreRequest))
	}
	return interceptor(ctx, in, info, handler)
}

func _Accelerator_WatchNodeMetrics_Handler(srv interface{}, stream grpc.ServerStream) error {
	m := new(WatchNodeMetricsRequest)
	if err := stream.RecvMsg(m); err != nil {
		return err
	}
	return srv.(AcceleratorServer).WatchNodeMetrics(m, &grpc.GenericServerStream[WatchNodeMetricsRequest, NodeSample]{ServerStream: stream})
}

// This type alias is provided for backwards compatibility with existing code that references the prior non-generic stream type by name.
type Accelerator_WatchNodeMetricsServer = grpc.ServerStreamingServer[NodeSample]

func _Accelerator_WatchWorkloadMetrics_Handler(srv interface{}, stream grpc.ServerStream) error {
	return srv.(AcceleratorServer).WatchWorkloadMetrics(&grpc.GenericServerStream[WorkloadSet, WorkloadSample]{ServerStream: stream})
}

// This type alias is provided for backwards compatibility with existing code that references the prior non-generic stream type by name.
type Accelerator_WatchWorkloadMetricsServer = grpc.BidiStreamingServer[WorkloadSet, WorkloadSample]

func _Accelerator_WatchHealth_Handler(srv interface{}, stream grpc.ServerStream) error {
	m := new(WatchHealthRequest)
	if err := stream.RecvMsg(m); err != nil {
		return err
	}
	return srv.(AcceleratorServer).WatchHealth(m, &grpc.GenericServerStream[WatchHealthRequest, HealthEvent]{ServerStream: stream})
}

// This type alias is provided for backwards compatibility with existing code that references the prior non-generic stream type by name.
type Accelerator_WatchHealthServer = grpc.ServerStreamingServer[HealthEvent]

// Accelerator_ServiceDesc is the grpc.ServiceDesc for Accelerator service.
// It's only intended for direct use with grpc.RegisterService,
// and not to be introspected or modified (even as a copy)
var Accelerator_ServiceDesc = grpc.ServiceDesc{
	ServiceName: "berth.accelerator.v1.Accelerator",
	HandlerType: (*AcceleratorServer)(nil),
	Methods: []grpc.MethodDesc{
		{
			MethodName: "Describe",
			Handler:    _Accelerator_Describe_Handler,
		},
		{
			MethodName: "Configure",
			Handler:    _Accelerator_Configure_Handler,
		},
		{
			MethodName: "Preflight",
			Handler:    _Accelerator_Preflight_Handler,
		},
		{
			MethodName: "Prepare",
			Handler:    _Accelerator_Prepare_Handler,
		},
		{
			MethodName: "Unprepare",
			Handler:    _Accelerator_Unprepare_Handler,
		},
		{
			MethodName: "Restore",
			Handler:    _Accelerator_Restore_Handler,
		},
	},
	Streams: []grpc.StreamDesc{
		{
			StreamName:    "WatchDevices",
			Handler:       _Accelerator_WatchDevices_Handler,
			ServerStreams: true,
		},
		{
			StreamName:    "WatchNodeMetrics",
			Handler:       _Accelerator_WatchNodeMetrics_Handler,
			ServerStreams: true,
		},
		{
			StreamName:    "WatchWorkloadMetrics",
			Handler:       _Accelerator_WatchWorkloadMetrics_Handler,
			ServerStreams: true,
			ClientStreams: true,
		},
		{
			StreamName:    "WatchHealth",
			Handler:       _Accelerator_WatchHealth_Handler,
			ServerStreams: true,
		},
	},
	Metadata: "plugins/accelerator/acceleratorpb/accelerator.proto",
}
