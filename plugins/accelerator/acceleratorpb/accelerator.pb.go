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

// Code generated by protoc-gen-go. DO NOT EDIT.
// versions:
// 	protoc-gen-go v1.36.12
// 	protoc        v3.21.12
// source: plugins/accelerator/acceleratorpb/accelerator.proto

package acceleratorpb

import (
	protoreflect "google.golang.org/protobuf/reflect/protoreflect"
	protoimpl "google.golang.org/protobuf/runtime/protoimpl"
	reflect "reflect"
	sync "sync"
	unsafe "unsafe"
)

const (
	// Verify that this generated code is sufficiently up-to-date.
	_ = protoimpl.EnforceVersion(20 - protoimpl.MinVersion)
	// Verify that runtime/protoimpl is sufficiently up-to-date.
	_ = protoimpl.EnforceVersion(protoimpl.MaxVersion - 20)
)

type Capability int32

const (
	Capability_CAPABILITY_UNSPECIFIED      Capability = 0
	Capability_CAPABILITY_FRACTIONS        Capability = 2 // gives a device away in parts: a SHARES or BYTES slot
	Capability_CAPABILITY_PARTITIONS       Capability = 3 // shows hardware partitions as devices
	Capability_CAPABILITY_WORKLOAD_METRICS Capability = 4
	Capability_CAPABILITY_PROCESS_METRICS  Capability = 5 // WorkloadMetrics.processes is filled
	Capability_CAPABILITY_HEALTH           Capability = 6
	Capability_CAPABILITY_SIDE_EFFECTS     Capability = 7 // Unprepare undoes something: the agent must not skip it
	Capability_CAPABILITY_RECONFIGURE      Capability = 8 // later Configure calls act without a restart
)

// Enum value maps for Capability.
var (
	Capability_name = map[int32]string{
		0: "CAPABILITY_UNSPECIFIED",
		2: "CAPABILITY_FRACTIONS",
		3: "CAPABILITY_PARTITIONS",
		4: "CAPABILITY_WORKLOAD_METRICS",
		5: "CAPABILITY_PROCESS_METRICS",
		6: "CAPABILITY_HEALTH",
		7: "CAPABILITY_SIDE_EFFECTS",
		8: "CAPABILITY_RECONFIGURE",
	}
	Capability_value = map[string]int32{
		"CAPABILITY_UNSPECIFIED":      0,
		"CAPABILITY_FRACTIONS":        2,
		"CAPABILITY_PARTITIONS":       3,
		"CAPABILITY_WORKLOAD_METRICS": 4,
		"CAPABILITY_PROCESS_METRICS":  5,
		"CAPABILITY_HEALTH":           6,
		"CAPABILITY_SIDE_EFFECTS":     7,
		"CAPABILITY_RECONFIGURE":      8,
	}
)

func (x Capability) Enum() *Capability {
	p := new(Capability)
	*p = x
	return p
}

func (x Capability) String() string {
	return protoimpl.X.EnumStringOf(x.Descriptor(), protoreflect.EnumNumber(x))
}

func (Capability) Descriptor() protoreflect.EnumDescriptor {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_enumTypes[0].Descriptor()
}

func (Capability) Type() protoreflect.EnumType {
	return &file_plugins_accelerator_acceleratorpb_accelerator_proto_enumTypes[0]
}

func (x Capability) Number() protoreflect.EnumNumber {
	return protoreflect.EnumNumber(x)
}

// Deprecated: Use Capability.Descriptor instead.
func (Capability) EnumDescriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{0}
}

type Health int32

const (
	Health_HEALTH_UNKNOWN   Health = 0
	Health_HEALTH_HEALTHY   Health = 1
	Health_HEALTH_DEGRADED  Health = 2 // works, but slower or at risk
	Health_HEALTH_UNHEALTHY Health = 3
	Health_HEALTH_LOST      Health = 4 // removed from the bus
)

// Enum value maps for Health.
var (
	Health_name = map[int32]string{
		0: "HEALTH_UNKNOWN",
		1: "HEALTH_HEALTHY",
		2: "HEALTH_DEGRADED",
		3: "HEALTH_UNHEALTHY",
		4: "HEALTH_LOST",
	}
	Health_value = map[string]int32{
		"HEALTH_UNKNOWN":   0,
		"HEALTH_HEALTHY":   1,
		"HEALTH_DEGRADED":  2,
		"HEALTH_UNHEALTHY": 3,
		"HEALTH_LOST":      4,
	}
)

func (x Health) Enum() *Health {
	p := new(Health)
	*p = x
	return p
}

func (x Health) String() string {
	return protoimpl.X.EnumStringOf(x.Descriptor(), protoreflect.EnumNumber(x))
}

func (Health) Descriptor() protoreflect.EnumDescriptor {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_enumTypes[1].Descriptor()
}

func (Health) Type() protoreflect.EnumType {
	return &file_plugins_accelerator_acceleratorpb_accelerator_proto_enumTypes[1]
}

func (x Health) Number() protoreflect.EnumNumber {
	return protoreflect.EnumNumber(x)
}

// Deprecated: Use Health.Descriptor instead.
func (Health) EnumDescriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{1}
}

// The same kinds, in the same order, as agent.proto's, one number higher.
// UNIQUE: at most one workload holds the slot on a device.
type SlotType_Kind int32

const (
	SlotType_UNSPECIFIED SlotType_Kind = 0
	SlotType_COUNT       SlotType_Kind = 1
	SlotType_BYTES       SlotType_Kind = 2
	SlotType_SHARES      SlotType_Kind = 3
	SlotType_UNIQUE      SlotType_Kind = 4
)

// Enum value maps for SlotType_Kind.
var (
	SlotType_Kind_name = map[int32]string{
		0: "UNSPECIFIED",
		1: "COUNT",
		2: "BYTES",
		3: "SHARES",
		4: "UNIQUE",
	}
	SlotType_Kind_value = map[string]int32{
		"UNSPECIFIED": 0,
		"COUNT":       1,
		"BYTES":       2,
		"SHARES":      3,
		"UNIQUE":      4,
	}
)

func (x SlotType_Kind) Enum() *SlotType_Kind {
	p := new(SlotType_Kind)
	*p = x
	return p
}

func (x SlotType_Kind) String() string {
	return protoimpl.X.EnumStringOf(x.Descriptor(), protoreflect.EnumNumber(x))
}

func (SlotType_Kind) Descriptor() protoreflect.EnumDescriptor {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_enumTypes[2].Descriptor()
}

func (SlotType_Kind) Type() protoreflect.EnumType {
	return &file_plugins_accelerator_acceleratorpb_accelerator_proto_enumTypes[2]
}

func (x SlotType_Kind) Number() protoreflect.EnumNumber {
	return protoreflect.EnumNumber(x)
}

// Deprecated: Use SlotType_Kind.Descriptor instead.
func (SlotType_Kind) EnumDescriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{8, 0}
}

type Look_State int32

const (
	Look_UNSPECIFIED Look_State = 0 // as COMPLETE
	Look_COMPLETE    Look_State = 1 // the snapshot has all devices
	Look_PARTIAL     Look_State = 2 // some devices are left out
	// The scan failed. A device that is not in the snapshot may still exist: the
	// agent keeps the one that it knows, and does not allocate it.
	Look_FAILED Look_State = 3
	// The scan has not ended in time and cannot be interrupted. As FAILED; the agent
	// restarts a plugin that hangs for a minute.
	Look_HANGING Look_State = 4
)

// Enum value maps for Look_State.
var (
	Look_State_name = map[int32]string{
		0: "UNSPECIFIED",
		1: "COMPLETE",
		2: "PARTIAL",
		3: "FAILED",
		4: "HANGING",
	}
	Look_State_value = map[string]int32{
		"UNSPECIFIED": 0,
		"COMPLETE":    1,
		"PARTIAL":     2,
		"FAILED":      3,
		"HANGING":     4,
	}
)

func (x Look_State) Enum() *Look_State {
	p := new(Look_State)
	*p = x
	return p
}

func (x Look_State) String() string {
	return protoimpl.X.EnumStringOf(x.Descriptor(), protoreflect.EnumNumber(x))
}

func (Look_State) Descriptor() protoreflect.EnumDescriptor {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_enumTypes[3].Descriptor()
}

func (Look_State) Type() protoreflect.EnumType {
	return &file_plugins_accelerator_acceleratorpb_accelerator_proto_enumTypes[3]
}

func (x Look_State) Number() protoreflect.EnumNumber {
	return protoreflect.EnumNumber(x)
}

// Deprecated: Use Look_State.Descriptor instead.
func (Look_State) EnumDescriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{11, 0}
}

type Link_Type int32

const (
	Link_UNKNOWN    Link_Type = 0
	Link_PCIE       Link_Type = 1
	Link_NVLINK     Link_Type = 2
	Link_XGMI       Link_Type = 3
	Link_NIC        Link_Type = 4
	Link_NOC        Link_Type = 5
	Link_SAME_BOARD Link_Type = 6
)

// Enum value maps for Link_Type.
var (
	Link_Type_name = map[int32]string{
		0: "UNKNOWN",
		1: "PCIE",
		2: "NVLINK",
		3: "XGMI",
		4: "NIC",
		5: "NOC",
		6: "SAME_BOARD",
	}
	Link_Type_value = map[string]int32{
		"UNKNOWN":    0,
		"PCIE":       1,
		"NVLINK":     2,
		"XGMI":       3,
		"NIC":        4,
		"NOC":        5,
		"SAME_BOARD": 6,
	}
)

func (x Link_Type) Enum() *Link_Type {
	p := new(Link_Type)
	*p = x
	return p
}

func (x Link_Type) String() string {
	return protoimpl.X.EnumStringOf(x.Descriptor(), protoreflect.EnumNumber(x))
}

func (Link_Type) Descriptor() protoreflect.EnumDescriptor {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_enumTypes[4].Descriptor()
}

func (Link_Type) Type() protoreflect.EnumType {
	return &file_plugins_accelerator_acceleratorpb_accelerator_proto_enumTypes[4]
}

func (x Link_Type) Number() protoreflect.EnumNumber {
	return protoreflect.EnumNumber(x)
}

// Deprecated: Use Link_Type.Descriptor instead.
func (Link_Type) EnumDescriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{15, 0}
}

type DeviceNode_Type int32

const (
	DeviceNode_UNSPECIFIED DeviceNode_Type = 0
	DeviceNode_CHAR        DeviceNode_Type = 1
	DeviceNode_BLOCK       DeviceNode_Type = 2
)

// Enum value maps for DeviceNode_Type.
var (
	DeviceNode_Type_name = map[int32]string{
		0: "UNSPECIFIED",
		1: "CHAR",
		2: "BLOCK",
	}
	DeviceNode_Type_value = map[string]int32{
		"UNSPECIFIED": 0,
		"CHAR":        1,
		"BLOCK":       2,
	}
)

func (x DeviceNode_Type) Enum() *DeviceNode_Type {
	p := new(DeviceNode_Type)
	*p = x
	return p
}

func (x DeviceNode_Type) String() string {
	return protoimpl.X.EnumStringOf(x.Descriptor(), protoreflect.EnumNumber(x))
}

func (DeviceNode_Type) Descriptor() protoreflect.EnumDescriptor {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_enumTypes[5].Descriptor()
}

func (DeviceNode_Type) Type() protoreflect.EnumType {
	return &file_plugins_accelerator_acceleratorpb_accelerator_proto_enumTypes[5]
}

func (x DeviceNode_Type) Number() protoreflect.EnumNumber {
	return protoreflect.EnumNumber(x)
}

// Deprecated: Use DeviceNode_Type.Descriptor instead.
func (DeviceNode_Type) EnumDescriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{21, 0}
}

type Metric_Kind int32

const (
	Metric_UNSPECIFIED Metric_Kind = 0
	Metric_GAUGE       Metric_Kind = 1 // how much there is now
	Metric_COUNTER     Metric_Kind = 2 // only grows while the plugin runs: joule, errors
	Metric_RATE        Metric_Kind = 3 // how much in a second: bytes over a link
	Metric_UTILIZATION Metric_Kind = 4 // how much of capacity, which is set
)

// Enum value maps for Metric_Kind.
var (
	Metric_Kind_name = map[int32]string{
		0: "UNSPECIFIED",
		1: "GAUGE",
		2: "COUNTER",
		3: "RATE",
		4: "UTILIZATION",
	}
	Metric_Kind_value = map[string]int32{
		"UNSPECIFIED": 0,
		"GAUGE":       1,
		"COUNTER":     2,
		"RATE":        3,
		"UTILIZATION": 4,
	}
)

func (x Metric_Kind) Enum() *Metric_Kind {
	p := new(Metric_Kind)
	*p = x
	return p
}

func (x Metric_Kind) String() string {
	return protoimpl.X.EnumStringOf(x.Descriptor(), protoreflect.EnumNumber(x))
}

func (Metric_Kind) Descriptor() protoreflect.EnumDescriptor {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_enumTypes[6].Descriptor()
}

func (Metric_Kind) Type() protoreflect.EnumType {
	return &file_plugins_accelerator_acceleratorpb_accelerator_proto_enumTypes[6]
}

func (x Metric_Kind) Number() protoreflect.EnumNumber {
	return protoreflect.EnumNumber(x)
}

// Deprecated: Use Metric_Kind.Descriptor instead.
func (Metric_Kind) EnumDescriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{32, 0}
}

// How well the number is known. ATTRIBUTED: the device's figure split over
// its users; ESTIMATED: derived; UNAVAILABLE: value means nothing.
type Metric_Quality int32

const (
	Metric_UNKNOWN     Metric_Quality = 0
	Metric_MEASURED    Metric_Quality = 1
	Metric_ATTRIBUTED  Metric_Quality = 2
	Metric_ESTIMATED   Metric_Quality = 3
	Metric_UNAVAILABLE Metric_Quality = 4
)

// Enum value maps for Metric_Quality.
var (
	Metric_Quality_name = map[int32]string{
		0: "UNKNOWN",
		1: "MEASURED",
		2: "ATTRIBUTED",
		3: "ESTIMATED",
		4: "UNAVAILABLE",
	}
	Metric_Quality_value = map[string]int32{
		"UNKNOWN":     0,
		"MEASURED":    1,
		"ATTRIBUTED":  2,
		"ESTIMATED":   3,
		"UNAVAILABLE": 4,
	}
)

func (x Metric_Quality) Enum() *Metric_Quality {
	p := new(Metric_Quality)
	*p = x
	return p
}

func (x Metric_Quality) String() string {
	return protoimpl.X.EnumStringOf(x.Descriptor(), protoreflect.EnumNumber(x))
}

func (Metric_Quality) Descriptor() protoreflect.EnumDescriptor {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_enumTypes[7].Descriptor()
}

func (Metric_Quality) Type() protoreflect.EnumType {
	return &file_plugins_accelerator_acceleratorpb_accelerator_proto_enumTypes[7]
}

func (x Metric_Quality) Number() protoreflect.EnumNumber {
	return protoreflect.EnumNumber(x)
}

// Deprecated: Use Metric_Quality.Descriptor instead.
func (Metric_Quality) EnumDescriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{32, 1}
}

type DescribeRequest struct {
	state        protoimpl.MessageState `protogen:"open.v1"`
	AgentVersion string                 `protobuf:"bytes,1,opt,name=agent_version,json=agentVersion,proto3" json:"agent_version,omitempty"`
	NodeName     string                 `protobuf:"bytes,2,opt,name=node_name,json=nodeName,proto3" json:"node_name,omitempty"`
	// New for every process of the agent.
	Incarnation   string `protobuf:"bytes,3,opt,name=incarnation,proto3" json:"incarnation,omitempty"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *DescribeRequest) Reset() {
	*x = DescribeRequest{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[0]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *DescribeRequest) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*DescribeRequest) ProtoMessage() {}

func (x *DescribeRequest) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[0]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use DescribeRequest.ProtoReflect.Descriptor instead.
func (*DescribeRequest) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{0}
}

func (x *DescribeRequest) GetAgentVersion() string {
	if x != nil {
		return x.AgentVersion
	}
	return ""
}

func (x *DescribeRequest) GetNodeName() string {
	if x != nil {
		return x.NodeName
	}
	return ""
}

func (x *DescribeRequest) GetIncarnation() string {
	if x != nil {
		return x.Incarnation
	}
	return ""
}

type DescribeResponse struct {
	state protoimpl.MessageState `protogen:"open.v1"`
	// Names the plugin and begins its slots and metrics: "cuda" owns "cuda.device".
	// Lower-case letters, digits and dashes, at most 32, a letter first.
	Key           string       `protobuf:"bytes,1,opt,name=key,proto3" json:"key,omitempty"`
	PluginVersion string       `protobuf:"bytes,2,opt,name=plugin_version,json=pluginVersion,proto3" json:"plugin_version,omitempty"`
	Vendor        string       `protobuf:"bytes,3,opt,name=vendor,proto3" json:"vendor,omitempty"`
	Capabilities  []Capability `protobuf:"varint,4,rep,packed,name=capabilities,proto3,enum=berth.accelerator.v1.Capability" json:"capabilities,omitempty"`
	// Every slot the plugin can ever offer, fixed for the life of the process.
	// Partition slots may end in a pattern: "cuda.device:*-mig".
	Slots []*SlotType `protobuf:"bytes,5,rep,name=slots,proto3" json:"slots,omitempty"`
	// JSON Schema of Configure's config_json; empty = no settings.
	ConfigSchema []byte `protobuf:"bytes,6,opt,name=config_schema,json=configSchema,proto3" json:"config_schema,omitempty"`
	// PCI vendor ids, four hexadecimal digits each, and after a slash the first digits of
	// the class where the vendor makes other hardware too: "1002", "8086/03". The agent
	// starts the plugin where one is on the bus, or where its configuration says so.
	// None = only by configuration.
	PciVendors []string `protobuf:"bytes,7,rep,name=pci_vendors,json=pciVendors,proto3" json:"pci_vendors,omitempty"`
	// Further names that begin slots, formed like key, for vendors whose products are
	// different resources: "warboy", "rngd". No two plugins of an agent share one.
	Families      []string `protobuf:"bytes,8,rep,name=families,proto3" json:"families,omitempty"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *DescribeResponse) Reset() {
	*x = DescribeResponse{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[1]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *DescribeResponse) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*DescribeResponse) ProtoMessage() {}

func (x *DescribeResponse) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[1]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use DescribeResponse.ProtoReflect.Descriptor instead.
func (*DescribeResponse) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{1}
}

func (x *DescribeResponse) GetKey() string {
	if x != nil {
		return x.Key
	}
	return ""
}

func (x *DescribeResponse) GetPluginVersion() string {
	if x != nil {
		return x.PluginVersion
	}
	return ""
}

func (x *DescribeResponse) GetVendor() string {
	if x != nil {
		return x.Vendor
	}
	return ""
}

func (x *DescribeResponse) GetCapabilities() []Capability {
	if x != nil {
		return x.Capabilities
	}
	return nil
}

func (x *DescribeResponse) GetSlots() []*SlotType {
	if x != nil {
		return x.Slots
	}
	return nil
}

func (x *DescribeResponse) GetConfigSchema() []byte {
	if x != nil {
		return x.ConfigSchema
	}
	return nil
}

func (x *DescribeResponse) GetPciVendors() []string {
	if x != nil {
		return x.PciVendors
	}
	return nil
}

func (x *DescribeResponse) GetFamilies() []string {
	if x != nil {
		return x.Families
	}
	return nil
}

type ConfigureRequest struct {
	state protoimpl.MessageState `protogen:"open.v1"`
	// The plugin's section of the agent's configuration; empty = defaults.
	ConfigJson []byte `protobuf:"bytes,1,opt,name=config_json,json=configJson,proto3" json:"config_json,omitempty"`
	Roots      *Roots `protobuf:"bytes,2,opt,name=roots,proto3" json:"roots,omitempty"`
	// Device ids to leave out entirely.
	DeviceMask    []string `protobuf:"bytes,3,rep,name=device_mask,json=deviceMask,proto3" json:"device_mask,omitempty"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *ConfigureRequest) Reset() {
	*x = ConfigureRequest{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[2]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *ConfigureRequest) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*ConfigureRequest) ProtoMessage() {}

func (x *ConfigureRequest) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[2]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use ConfigureRequest.ProtoReflect.Descriptor instead.
func (*ConfigureRequest) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{2}
}

func (x *ConfigureRequest) GetConfigJson() []byte {
	if x != nil {
		return x.ConfigJson
	}
	return nil
}

func (x *ConfigureRequest) GetRoots() *Roots {
	if x != nil {
		return x.Roots
	}
	return nil
}

func (x *ConfigureRequest) GetDeviceMask() []string {
	if x != nil {
		return x.DeviceMask
	}
	return nil
}

type ConfigureResponse struct {
	state         protoimpl.MessageState `protogen:"open.v1"`
	Warnings      []string               `protobuf:"bytes,1,rep,name=warnings,proto3" json:"warnings,omitempty"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *ConfigureResponse) Reset() {
	*x = ConfigureResponse{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[3]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *ConfigureResponse) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*ConfigureResponse) ProtoMessage() {}

func (x *ConfigureResponse) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[3]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use ConfigureResponse.ProtoReflect.Descriptor instead.
func (*ConfigureResponse) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{3}
}

func (x *ConfigureResponse) GetWarnings() []string {
	if x != nil {
		return x.Warnings
	}
	return nil
}

// Roots are where the plugin finds the host's files. Empty = the usual place.
type Roots struct {
	state  protoimpl.MessageState `protogen:"open.v1"`
	Sys    string                 `protobuf:"bytes,1,opt,name=sys,proto3" json:"sys,omitempty"`       // "/sys"
	Dev    string                 `protobuf:"bytes,2,opt,name=dev,proto3" json:"dev,omitempty"`       // "/dev"
	Proc   string                 `protobuf:"bytes,3,opt,name=proc,proto3" json:"proc,omitempty"`     // "/proc"
	Driver string                 `protobuf:"bytes,4,opt,name=driver,proto3" json:"driver,omitempty"` // "/": below it the driver's libraries and programs
	// Directories to look for vendor programs in; empty = $PATH.
	Path []string `protobuf:"bytes,5,rep,name=path,proto3" json:"path,omitempty"`
	// Writable by the plugin, kept over restarts, its own.
	State         string `protobuf:"bytes,6,opt,name=state,proto3" json:"state,omitempty"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *Roots) Reset() {
	*x = Roots{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[4]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *Roots) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*Roots) ProtoMessage() {}

func (x *Roots) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[4]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use Roots.ProtoReflect.Descriptor instead.
func (*Roots) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{4}
}

func (x *Roots) GetSys() string {
	if x != nil {
		return x.Sys
	}
	return ""
}

func (x *Roots) GetDev() string {
	if x != nil {
		return x.Dev
	}
	return ""
}

func (x *Roots) GetProc() string {
	if x != nil {
		return x.Proc
	}
	return ""
}

func (x *Roots) GetDriver() string {
	if x != nil {
		return x.Driver
	}
	return ""
}

func (x *Roots) GetPath() []string {
	if x != nil {
		return x.Path
	}
	return nil
}

func (x *Roots) GetState() string {
	if x != nil {
		return x.State
	}
	return ""
}

type PreflightRequest struct {
	state         protoimpl.MessageState `protogen:"open.v1"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *PreflightRequest) Reset() {
	*x = PreflightRequest{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[5]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *PreflightRequest) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*PreflightRequest) ProtoMessage() {}

func (x *PreflightRequest) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[5]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use PreflightRequest.ProtoReflect.Descriptor instead.
func (*PreflightRequest) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{5}
}

type PreflightResponse struct {
	state         protoimpl.MessageState `protogen:"open.v1"`
	Checks        []*Check               `protobuf:"bytes,1,rep,name=checks,proto3" json:"checks,omitempty"`
	DriverInfo    map[string]string      `protobuf:"bytes,2,rep,name=driver_info,json=driverInfo,proto3" json:"driver_info,omitempty" protobuf_key:"bytes,1,opt,name=key" protobuf_val:"bytes,2,opt,name=value"` // "driver": "570.86.15", "cuda": "12.8"
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *PreflightResponse) Reset() {
	*x = PreflightResponse{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[6]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *PreflightResponse) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*PreflightResponse) ProtoMessage() {}

func (x *PreflightResponse) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[6]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use PreflightResponse.ProtoReflect.Descriptor instead.
func (*PreflightResponse) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{6}
}

func (x *PreflightResponse) GetChecks() []*Check {
	if x != nil {
		return x.Checks
	}
	return nil
}

func (x *PreflightResponse) GetDriverInfo() map[string]string {
	if x != nil {
		return x.DriverInfo
	}
	return nil
}

type Check struct {
	state  protoimpl.MessageState `protogen:"open.v1"`
	Name   string                 `protobuf:"bytes,1,opt,name=name,proto3" json:"name,omitempty"` // "driver", "device-nodes"
	Ok     bool                   `protobuf:"varint,2,opt,name=ok,proto3" json:"ok,omitempty"`
	Detail string                 `protobuf:"bytes,3,opt,name=detail,proto3" json:"detail,omitempty"`
	// The devices work without it: a warning when it is not ok, else an error.
	Optional      bool `protobuf:"varint,4,opt,name=optional,proto3" json:"optional,omitempty"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *Check) Reset() {
	*x = Check{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[7]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *Check) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*Check) ProtoMessage() {}

func (x *Check) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[7]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use Check.ProtoReflect.Descriptor instead.
func (*Check) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{7}
}

func (x *Check) GetName() string {
	if x != nil {
		return x.Name
	}
	return ""
}

func (x *Check) GetOk() bool {
	if x != nil {
		return x.Ok
	}
	return false
}

func (x *Check) GetDetail() string {
	if x != nil {
		return x.Detail
	}
	return ""
}

func (x *Check) GetOptional() bool {
	if x != nil {
		return x.Optional
	}
	return false
}

type SlotType struct {
	state protoimpl.MessageState `protogen:"open.v1"`
	// Key, dot, unit, for partitions a colon and the profile: "cuda.device",
	// "cuda.device:1g.10gb-mig". At most 64 of a-z 0-9 . : + - .
	Name string        `protobuf:"bytes,1,opt,name=name,proto3" json:"name,omitempty"`
	Kind SlotType_Kind `protobuf:"varint,2,opt,name=kind,proto3,enum=berth.accelerator.v1.SlotType_Kind" json:"kind,omitempty"`
	// Smallest step of an amount; empty = 1, and 0.001 for SHARES.
	Quantum string `protobuf:"bytes,3,opt,name=quantum,proto3" json:"quantum,omitempty"`
	// While any of this slot is allocated on a device, none of these may be on
	// the same device. Holds both ways; naming it once is enough. A trailing *
	// stands for any ending.
	ExclusiveWith []string `protobuf:"bytes,4,rep,name=exclusive_with,json=exclusiveWith,proto3" json:"exclusive_with,omitempty"`
	// When set, the only amounts that one kernel may hold of this slot, over all
	// its devices, growing: 1, 4, 8. Prepare refuses others with INVALID_ARGUMENT.
	AllowedCounts []uint32 `protobuf:"varint,5,rep,packed,name=allowed_counts,json=allowedCounts,proto3" json:"allowed_counts,omitempty"`
	DisplayName   string   `protobuf:"bytes,6,opt,name=display_name,json=displayName,proto3" json:"display_name,omitempty"` // "fGPU"
	Description   string   `protobuf:"bytes,7,opt,name=description,proto3" json:"description,omitempty"`
	Unit          string   `protobuf:"bytes,8,opt,name=unit,proto3" json:"unit,omitempty"` // "GPU", "GiB"
	Icon          string   `protobuf:"bytes,9,opt,name=icon,proto3" json:"icon,omitempty"` // key of an icon known to the web page
	// All unified slots of a device are names of one amount, of which each capacity
	// stands for the whole: a part taken under one name leaves that much less under
	// the others. Not with kind UNIQUE. The same in the description and in every
	// snapshot.
	Unified       bool `protobuf:"varint,10,opt,name=unified,proto3" json:"unified,omitempty"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *SlotType) Reset() {
	*x = SlotType{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[8]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *SlotType) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*SlotType) ProtoMessage() {}

func (x *SlotType) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[8]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use SlotType.ProtoReflect.Descriptor instead.
func (*SlotType) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{8}
}

func (x *SlotType) GetName() string {
	if x != nil {
		return x.Name
	}
	return ""
}

func (x *SlotType) GetKind() SlotType_Kind {
	if x != nil {
		return x.Kind
	}
	return SlotType_UNSPECIFIED
}

func (x *SlotType) GetQuantum() string {
	if x != nil {
		return x.Quantum
	}
	return ""
}

func (x *SlotType) GetExclusiveWith() []string {
	if x != nil {
		return x.ExclusiveWith
	}
	return nil
}

func (x *SlotType) GetAllowedCounts() []uint32 {
	if x != nil {
		return x.AllowedCounts
	}
	return nil
}

func (x *SlotType) GetDisplayName() string {
	if x != nil {
		return x.DisplayName
	}
	return ""
}

func (x *SlotType) GetDescription() string {
	if x != nil {
		return x.Description
	}
	return ""
}

func (x *SlotType) GetUnit() string {
	if x != nil {
		return x.Unit
	}
	return ""
}

func (x *SlotType) GetIcon() string {
	if x != nil {
		return x.Icon
	}
	return ""
}

func (x *SlotType) GetUnified() bool {
	if x != nil {
		return x.Unified
	}
	return false
}

type WatchDevicesRequest struct {
	state         protoimpl.MessageState `protogen:"open.v1"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *WatchDevicesRequest) Reset() {
	*x = WatchDevicesRequest{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[9]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *WatchDevicesRequest) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*WatchDevicesRequest) ProtoMessage() {}

func (x *WatchDevicesRequest) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[9]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use WatchDevicesRequest.ProtoReflect.Descriptor instead.
func (*WatchDevicesRequest) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{9}
}

type DeviceSnapshot struct {
	state protoimpl.MessageState `protogen:"open.v1"`
	// Grows with every change within one process of the plugin; begins above 0.
	Revision uint64 `protobuf:"varint,1,opt,name=revision,proto3" json:"revision,omitempty"`
	// In a stable order: the same hardware gives the same bytes.
	Devices    []*Device         `protobuf:"bytes,2,rep,name=devices,proto3" json:"devices,omitempty"`
	Counters   []*CounterSet     `protobuf:"bytes,3,rep,name=counters,proto3" json:"counters,omitempty"`
	Links      []*Link           `protobuf:"bytes,4,rep,name=links,proto3" json:"links,omitempty"`
	DriverInfo map[string]string `protobuf:"bytes,5,rep,name=driver_info,json=driverInfo,proto3" json:"driver_info,omitempty" protobuf_key:"bytes,1,opt,name=key" protobuf_val:"bytes,2,opt,name=value"`
	// Slots this node really has, all covered by DescribeResponse.slots, with
	// patterns resolved.
	Slots []*SlotType `protobuf:"bytes,6,rep,name=slots,proto3" json:"slots,omitempty"`
	// The result of the scan behind this snapshot. Unset = complete.
	Look          *Look `protobuf:"bytes,7,opt,name=look,proto3" json:"look,omitempty"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *DeviceSnapshot) Reset() {
	*x = DeviceSnapshot{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[10]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *DeviceSnapshot) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*DeviceSnapshot) ProtoMessage() {}

func (x *DeviceSnapshot) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[10]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use DeviceSnapshot.ProtoReflect.Descriptor instead.
func (*DeviceSnapshot) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{10}
}

func (x *DeviceSnapshot) GetRevision() uint64 {
	if x != nil {
		return x.Revision
	}
	return 0
}

func (x *DeviceSnapshot) GetDevices() []*Device {
	if x != nil {
		return x.Devices
	}
	return nil
}

func (x *DeviceSnapshot) GetCounters() []*CounterSet {
	if x != nil {
		return x.Counters
	}
	return nil
}

func (x *DeviceSnapshot) GetLinks() []*Link {
	if x != nil {
		return x.Links
	}
	return nil
}

func (x *DeviceSnapshot) GetDriverInfo() map[string]string {
	if x != nil {
		return x.DriverInfo
	}
	return nil
}

func (x *DeviceSnapshot) GetSlots() []*SlotType {
	if x != nil {
		return x.Slots
	}
	return nil
}

func (x *DeviceSnapshot) GetLook() *Look {
	if x != nil {
		return x.Look
	}
	return nil
}

// Look is the result of a scan of the hardware. It is about the plugin: a problem of
// one device is in that device.
type Look struct {
	state         protoimpl.MessageState `protogen:"open.v1"`
	State         Look_State             `protobuf:"varint,1,opt,name=state,proto3,enum=berth.accelerator.v1.Look_State" json:"state,omitempty"`
	Message       string                 `protobuf:"bytes,2,opt,name=message,proto3" json:"message,omitempty"` // for people: the reason, unless the scan is complete
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *Look) Reset() {
	*x = Look{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[11]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *Look) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*Look) ProtoMessage() {}

func (x *Look) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[11]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use Look.ProtoReflect.Descriptor instead.
func (*Look) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{11}
}

func (x *Look) GetState() Look_State {
	if x != nil {
		return x.State
	}
	return Look_UNSPECIFIED
}

func (x *Look) GetMessage() string {
	if x != nil {
		return x.Message
	}
	return ""
}

type Device struct {
	state protoimpl.MessageState `protogen:"open.v1"`
	// Unique in the plugin, stable over reboots where hardware allows it (uuid,
	// else serial, else bus address). At most 128 of A-Z a-z 0-9 . _ : / - .
	Id         string `protobuf:"bytes,1,opt,name=id,proto3" json:"id,omitempty"`
	Model      string `protobuf:"bytes,2,opt,name=model,proto3" json:"model,omitempty"`
	Serial     string `protobuf:"bytes,3,opt,name=serial,proto3" json:"serial,omitempty"`
	PciAddress string `protobuf:"bytes,4,opt,name=pci_address,json=pciAddress,proto3" json:"pci_address,omitempty"`
	// Unset where unknown, never -1.
	NumaNode        *int32 `protobuf:"varint,5,opt,name=numa_node,json=numaNode,proto3,oneof" json:"numa_node,omitempty"`
	PcieRoot        string `protobuf:"bytes,6,opt,name=pcie_root,json=pcieRoot,proto3" json:"pcie_root,omitempty"`
	MemoryBytes     uint64 `protobuf:"varint,7,opt,name=memory_bytes,json=memoryBytes,proto3" json:"memory_bytes,omitempty"`
	ProcessingUnits uint32 `protobuf:"varint,8,opt,name=processing_units,json=processingUnits,proto3" json:"processing_units,omitempty"` // streaming multiprocessors, compute units, cores
	// What else there is to know or to select by, at most 128. Names are lower
	// case: "firmware", "driver", "architecture", "compute_capability", "form_factor",
	// "cores", "node". Numbers are decimal, truth is true or false, versions are
	// numbers with dots.
	Attributes map[string]string `protobuf:"bytes,9,rep,name=attributes,proto3" json:"attributes,omitempty" protobuf_key:"bytes,1,opt,name=key" protobuf_val:"bytes,2,opt,name=value"`
	// Slot name to amount. Slots of one device that exclude each other are
	// different ways to allocate the same hardware.
	Capacity map[string]string `protobuf:"bytes,10,rep,name=capacity,proto3" json:"capacity,omitempty" protobuf_key:"bytes,1,opt,name=key" protobuf_val:"bytes,2,opt,name=value"`
	// Amounts of shared counters that the device uses while any part of it is allocated.
	Consumes []*CounterUse `protobuf:"bytes,11,rep,name=consumes,proto3" json:"consumes,omitempty"`
	// Devices that belong together: card serial, tray, ring.
	Groups        []string `protobuf:"bytes,12,rep,name=groups,proto3" json:"groups,omitempty"`
	Health        Health   `protobuf:"varint,13,opt,name=health,proto3,enum=berth.accelerator.v1.Health" json:"health,omitempty"`
	HealthMessage string   `protobuf:"bytes,14,opt,name=health_message,json=healthMessage,proto3" json:"health_message,omitempty"`
	// Set if a kernel can get it. If unset, reject_reasons has the reasons.
	Allocatable   bool     `protobuf:"varint,15,opt,name=allocatable,proto3" json:"allocatable,omitempty"`
	RejectReasons []string `protobuf:"bytes,16,rep,name=reject_reasons,json=rejectReasons,proto3" json:"reject_reasons,omitempty"`
	// Of a partition: the device it is cut from. The two are never in use together,
	// whatever they draw from counters.
	ParentId      string `protobuf:"bytes,17,opt,name=parent_id,json=parentId,proto3" json:"parent_id,omitempty"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *Device) Reset() {
	*x = Device{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[12]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *Device) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*Device) ProtoMessage() {}

func (x *Device) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[12]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use Device.ProtoReflect.Descriptor instead.
func (*Device) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{12}
}

func (x *Device) GetId() string {
	if x != nil {
		return x.Id
	}
	return ""
}

func (x *Device) GetModel() string {
	if x != nil {
		return x.Model
	}
	return ""
}

func (x *Device) GetSerial() string {
	if x != nil {
		return x.Serial
	}
	return ""
}

func (x *Device) GetPciAddress() string {
	if x != nil {
		return x.PciAddress
	}
	return ""
}

func (x *Device) GetNumaNode() int32 {
	if x != nil && x.NumaNode != nil {
		return *x.NumaNode
	}
	return 0
}

func (x *Device) GetPcieRoot() string {
	if x != nil {
		return x.PcieRoot
	}
	return ""
}

func (x *Device) GetMemoryBytes() uint64 {
	if x != nil {
		return x.MemoryBytes
	}
	return 0
}

func (x *Device) GetProcessingUnits() uint32 {
	if x != nil {
		return x.ProcessingUnits
	}
	return 0
}

func (x *Device) GetAttributes() map[string]string {
	if x != nil {
		return x.Attributes
	}
	return nil
}

func (x *Device) GetCapacity() map[string]string {
	if x != nil {
		return x.Capacity
	}
	return nil
}

func (x *Device) GetConsumes() []*CounterUse {
	if x != nil {
		return x.Consumes
	}
	return nil
}

func (x *Device) GetGroups() []string {
	if x != nil {
		return x.Groups
	}
	return nil
}

func (x *Device) GetHealth() Health {
	if x != nil {
		return x.Health
	}
	return Health_HEALTH_UNKNOWN
}

func (x *Device) GetHealthMessage() string {
	if x != nil {
		return x.HealthMessage
	}
	return ""
}

func (x *Device) GetAllocatable() bool {
	if x != nil {
		return x.Allocatable
	}
	return false
}

func (x *Device) GetRejectReasons() []string {
	if x != nil {
		return x.RejectReasons
	}
	return nil
}

func (x *Device) GetParentId() string {
	if x != nil {
		return x.ParentId
	}
	return ""
}

// CounterSet is hardware that several devices are cut from; partitions whose
// uses do not fit together cannot be allocated together.
type CounterSet struct {
	state         protoimpl.MessageState `protogen:"open.v1"`
	Name          string                 `protobuf:"bytes,1,opt,name=name,proto3" json:"name,omitempty"`
	Counters      map[string]string      `protobuf:"bytes,2,rep,name=counters,proto3" json:"counters,omitempty" protobuf_key:"bytes,1,opt,name=key" protobuf_val:"bytes,2,opt,name=value"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *CounterSet) Reset() {
	*x = CounterSet{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[13]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *CounterSet) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*CounterSet) ProtoMessage() {}

func (x *CounterSet) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[13]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use CounterSet.ProtoReflect.Descriptor instead.
func (*CounterSet) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{13}
}

func (x *CounterSet) GetName() string {
	if x != nil {
		return x.Name
	}
	return ""
}

func (x *CounterSet) GetCounters() map[string]string {
	if x != nil {
		return x.Counters
	}
	return nil
}

type CounterUse struct {
	state         protoimpl.MessageState `protogen:"open.v1"`
	Set           string                 `protobuf:"bytes,1,opt,name=set,proto3" json:"set,omitempty"`
	Amounts       map[string]string      `protobuf:"bytes,2,rep,name=amounts,proto3" json:"amounts,omitempty" protobuf_key:"bytes,1,opt,name=key" protobuf_val:"bytes,2,opt,name=value"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *CounterUse) Reset() {
	*x = CounterUse{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[14]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *CounterUse) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*CounterUse) ProtoMessage() {}

func (x *CounterUse) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[14]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use CounterUse.ProtoReflect.Descriptor instead.
func (*CounterUse) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{14}
}

func (x *CounterUse) GetSet() string {
	if x != nil {
		return x.Set
	}
	return ""
}

func (x *CounterUse) GetAmounts() map[string]string {
	if x != nil {
		return x.Amounts
	}
	return nil
}

type Link struct {
	state         protoimpl.MessageState `protogen:"open.v1"`
	A             string                 `protobuf:"bytes,1,opt,name=a,proto3" json:"a,omitempty"`
	B             string                 `protobuf:"bytes,2,opt,name=b,proto3" json:"b,omitempty"`
	Type          Link_Type              `protobuf:"varint,3,opt,name=type,proto3,enum=berth.accelerator.v1.Link_Type" json:"type,omitempty"`
	Distance      uint32                 `protobuf:"varint,4,opt,name=distance,proto3" json:"distance,omitempty"` // smaller is nearer, comparable within one plugin
	Gbps          float64                `protobuf:"fixed64,5,opt,name=gbps,proto3" json:"gbps,omitempty"`        // 0 = unknown
	P2P           bool                   `protobuf:"varint,6,opt,name=p2p,proto3" json:"p2p,omitempty"`           // direct access to each other's memory
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *Link) Reset() {
	*x = Link{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[15]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *Link) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*Link) ProtoMessage() {}

func (x *Link) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[15]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use Link.ProtoReflect.Descriptor instead.
func (*Link) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{15}
}

func (x *Link) GetA() string {
	if x != nil {
		return x.A
	}
	return ""
}

func (x *Link) GetB() string {
	if x != nil {
		return x.B
	}
	return ""
}

func (x *Link) GetType() Link_Type {
	if x != nil {
		return x.Type
	}
	return Link_UNKNOWN
}

func (x *Link) GetDistance() uint32 {
	if x != nil {
		return x.Distance
	}
	return 0
}

func (x *Link) GetGbps() float64 {
	if x != nil {
		return x.Gbps
	}
	return 0
}

func (x *Link) GetP2P() bool {
	if x != nil {
		return x.P2P
	}
	return false
}

type Allocation struct {
	state         protoimpl.MessageState `protogen:"open.v1"`
	Slot          string                 `protobuf:"bytes,1,opt,name=slot,proto3" json:"slot,omitempty"`
	DeviceId      string                 `protobuf:"bytes,2,opt,name=device_id,json=deviceId,proto3" json:"device_id,omitempty"`
	Amount        string                 `protobuf:"bytes,3,opt,name=amount,proto3" json:"amount,omitempty"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *Allocation) Reset() {
	*x = Allocation{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[16]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *Allocation) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*Allocation) ProtoMessage() {}

func (x *Allocation) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[16]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use Allocation.ProtoReflect.Descriptor instead.
func (*Allocation) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{16}
}

func (x *Allocation) GetSlot() string {
	if x != nil {
		return x.Slot
	}
	return ""
}

func (x *Allocation) GetDeviceId() string {
	if x != nil {
		return x.DeviceId
	}
	return ""
}

func (x *Allocation) GetAmount() string {
	if x != nil {
		return x.Amount
	}
	return ""
}

type PrepareRequest struct {
	state        protoimpl.MessageState `protogen:"open.v1"`
	AllocationId string                 `protobuf:"bytes,1,opt,name=allocation_id,json=allocationId,proto3" json:"allocation_id,omitempty"`
	KernelId     string                 `protobuf:"bytes,2,opt,name=kernel_id,json=kernelId,proto3" json:"kernel_id,omitempty"`
	SessionId    string                 `protobuf:"bytes,3,opt,name=session_id,json=sessionId,proto3" json:"session_id,omitempty"`
	Allocations  []*Allocation          `protobuf:"bytes,4,rep,name=allocations,proto3" json:"allocations,omitempty"`
	// On the host, writable by the plugin, of this allocation alone, removed by
	// the agent after Unprepare. Mounts may come from here.
	WorkDir string `protobuf:"bytes,6,opt,name=work_dir,json=workDir,proto3" json:"work_dir,omitempty"`
	// Workloads of one trust domain may share a vendor's server process.
	TrustDomain   string            `protobuf:"bytes,7,opt,name=trust_domain,json=trustDomain,proto3" json:"trust_domain,omitempty"`
	Options       map[string]string `protobuf:"bytes,8,rep,name=options,proto3" json:"options,omitempty" protobuf_key:"bytes,1,opt,name=key" protobuf_val:"bytes,2,opt,name=value"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *PrepareRequest) Reset() {
	*x = PrepareRequest{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[17]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *PrepareRequest) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*PrepareRequest) ProtoMessage() {}

func (x *PrepareRequest) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[17]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use PrepareRequest.ProtoReflect.Descriptor instead.
func (*PrepareRequest) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{17}
}

func (x *PrepareRequest) GetAllocationId() string {
	if x != nil {
		return x.AllocationId
	}
	return ""
}

func (x *PrepareRequest) GetKernelId() string {
	if x != nil {
		return x.KernelId
	}
	return ""
}

func (x *PrepareRequest) GetSessionId() string {
	if x != nil {
		return x.SessionId
	}
	return ""
}

func (x *PrepareRequest) GetAllocations() []*Allocation {
	if x != nil {
		return x.Allocations
	}
	return nil
}

func (x *PrepareRequest) GetWorkDir() string {
	if x != nil {
		return x.WorkDir
	}
	return ""
}

func (x *PrepareRequest) GetTrustDomain() string {
	if x != nil {
		return x.TrustDomain
	}
	return ""
}

func (x *PrepareRequest) GetOptions() map[string]string {
	if x != nil {
		return x.Options
	}
	return nil
}

type PrepareResponse struct {
	state protoimpl.MessageState `protogen:"open.v1"`
	Edits *ContainerEdits        `protobuf:"bytes,1,opt,name=edits,proto3" json:"edits,omitempty"`
	// Also lines for the container, in a file that it reads and does not write:
	// <KEY>_0_DEVICE=…, _MODEL, _MEMORY, _UNITS, with the plugin's key in upper case.
	Attached []*AttachedDevice `protobuf:"bytes,2,rep,name=attached,proto3" json:"attached,omitempty"`
	// Further lines for people and programs in the container:
	// BERTH_CUDA_MEMORY_LIMITS=… At most 128; keys of at most 64 of A-Z a-z 0-9 _, not
	// a digit first; values of one line, at most 4096 bytes. Where two plugins of a
	// container say one key, they say the same. Otherwise the answer is refused.
	ResourceData map[string]string `protobuf:"bytes,3,rep,name=resource_data,json=resourceData,proto3" json:"resource_data,omitempty" protobuf_key:"bytes,1,opt,name=key" protobuf_val:"bytes,2,opt,name=value"`
	// Opaque; the agent stores it and hands it back in Restore.
	State         []byte `protobuf:"bytes,4,opt,name=state,proto3" json:"state,omitempty"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *PrepareResponse) Reset() {
	*x = PrepareResponse{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[18]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *PrepareResponse) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*PrepareResponse) ProtoMessage() {}

func (x *PrepareResponse) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[18]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use PrepareResponse.ProtoReflect.Descriptor instead.
func (*PrepareResponse) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{18}
}

func (x *PrepareResponse) GetEdits() *ContainerEdits {
	if x != nil {
		return x.Edits
	}
	return nil
}

func (x *PrepareResponse) GetAttached() []*AttachedDevice {
	if x != nil {
		return x.Attached
	}
	return nil
}

func (x *PrepareResponse) GetResourceData() map[string]string {
	if x != nil {
		return x.ResourceData
	}
	return nil
}

func (x *PrepareResponse) GetState() []byte {
	if x != nil {
		return x.State
	}
	return nil
}

// AttachedDevice describes a device as the workload sees it, in the order in which it
// numbers its devices.
type AttachedDevice struct {
	state           protoimpl.MessageState `protogen:"open.v1"`
	DeviceId        string                 `protobuf:"bytes,1,opt,name=device_id,json=deviceId,proto3" json:"device_id,omitempty"`
	Model           string                 `protobuf:"bytes,2,opt,name=model,proto3" json:"model,omitempty"`
	MemoryBytes     uint64                 `protobuf:"varint,3,opt,name=memory_bytes,json=memoryBytes,proto3" json:"memory_bytes,omitempty"` // what it may use, a fraction's part
	ProcessingUnits uint32                 `protobuf:"varint,4,opt,name=processing_units,json=processingUnits,proto3" json:"processing_units,omitempty"`
	unknownFields   protoimpl.UnknownFields
	sizeCache       protoimpl.SizeCache
}

func (x *AttachedDevice) Reset() {
	*x = AttachedDevice{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[19]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *AttachedDevice) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*AttachedDevice) ProtoMessage() {}

func (x *AttachedDevice) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[19]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use AttachedDevice.ProtoReflect.Descriptor instead.
func (*AttachedDevice) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{19}
}

func (x *AttachedDevice) GetDeviceId() string {
	if x != nil {
		return x.DeviceId
	}
	return ""
}

func (x *AttachedDevice) GetModel() string {
	if x != nil {
		return x.Model
	}
	return ""
}

func (x *AttachedDevice) GetMemoryBytes() uint64 {
	if x != nil {
		return x.MemoryBytes
	}
	return 0
}

func (x *AttachedDevice) GetProcessingUnits() uint32 {
	if x != nil {
		return x.ProcessingUnits
	}
	return 0
}

// ContainerEdits change a container before it starts. The agent applies them
// to the OCI spec and checks what is dangerous (host_ipc, capabilities,
// sysctls, syscalls) against the operator's allow-list. Nothing in a container
// is ever executed for them.
type ContainerEdits struct {
	state       protoimpl.MessageState `protogen:"open.v1"`
	DeviceNodes []*DeviceNode          `protobuf:"bytes,1,rep,name=device_nodes,json=deviceNodes,proto3" json:"device_nodes,omitempty"`
	Mounts      []*Mount               `protobuf:"bytes,2,rep,name=mounts,proto3" json:"mounts,omitempty"`
	Env         map[string]string      `protobuf:"bytes,3,rep,name=env,proto3" json:"env,omitempty" protobuf_key:"bytes,1,opt,name=key" protobuf_val:"bytes,2,opt,name=value"`
	// Directories in the container put in front of the loader's search path.
	LibraryDirs []string `protobuf:"bytes,4,rep,name=library_dirs,json=libraryDirs,proto3" json:"library_dirs,omitempty"`
	// Files in the container every process of the workload loads first.
	PreloadLibs    []string          `protobuf:"bytes,5,rep,name=preload_libs,json=preloadLibs,proto3" json:"preload_libs,omitempty"`
	AdditionalGids []uint32          `protobuf:"varint,6,rep,packed,name=additional_gids,json=additionalGids,proto3" json:"additional_gids,omitempty"`
	Rlimits        []*Rlimit         `protobuf:"bytes,7,rep,name=rlimits,proto3" json:"rlimits,omitempty"`
	Capabilities   []string          `protobuf:"bytes,8,rep,name=capabilities,proto3" json:"capabilities,omitempty"` // "CAP_IPC_LOCK"
	Syscalls       []string          `protobuf:"bytes,9,rep,name=syscalls,proto3" json:"syscalls,omitempty"`         // to allow beyond the default profile
	Sysctls        map[string]string `protobuf:"bytes,10,rep,name=sysctls,proto3" json:"sysctls,omitempty" protobuf_key:"bytes,1,opt,name=key" protobuf_val:"bytes,2,opt,name=value"`
	HostIpc        bool              `protobuf:"varint,11,opt,name=host_ipc,json=hostIpc,proto3" json:"host_ipc,omitempty"`
	Annotations    map[string]string `protobuf:"bytes,12,rep,name=annotations,proto3" json:"annotations,omitempty" protobuf_key:"bytes,1,opt,name=key" protobuf_val:"bytes,2,opt,name=value"`
	Networks       []string          `protobuf:"bytes,13,rep,name=networks,proto3" json:"networks,omitempty"`
	unknownFields  protoimpl.UnknownFields
	sizeCache      protoimpl.SizeCache
}

func (x *ContainerEdits) Reset() {
	*x = ContainerEdits{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[20]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *ContainerEdits) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*ContainerEdits) ProtoMessage() {}

func (x *ContainerEdits) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[20]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use ContainerEdits.ProtoReflect.Descriptor instead.
func (*ContainerEdits) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{20}
}

func (x *ContainerEdits) GetDeviceNodes() []*DeviceNode {
	if x != nil {
		return x.DeviceNodes
	}
	return nil
}

func (x *ContainerEdits) GetMounts() []*Mount {
	if x != nil {
		return x.Mounts
	}
	return nil
}

func (x *ContainerEdits) GetEnv() map[string]string {
	if x != nil {
		return x.Env
	}
	return nil
}

func (x *ContainerEdits) GetLibraryDirs() []string {
	if x != nil {
		return x.LibraryDirs
	}
	return nil
}

func (x *ContainerEdits) GetPreloadLibs() []string {
	if x != nil {
		return x.PreloadLibs
	}
	return nil
}

func (x *ContainerEdits) GetAdditionalGids() []uint32 {
	if x != nil {
		return x.AdditionalGids
	}
	return nil
}

func (x *ContainerEdits) GetRlimits() []*Rlimit {
	if x != nil {
		return x.Rlimits
	}
	return nil
}

func (x *ContainerEdits) GetCapabilities() []string {
	if x != nil {
		return x.Capabilities
	}
	return nil
}

func (x *ContainerEdits) GetSyscalls() []string {
	if x != nil {
		return x.Syscalls
	}
	return nil
}

func (x *ContainerEdits) GetSysctls() map[string]string {
	if x != nil {
		return x.Sysctls
	}
	return nil
}

func (x *ContainerEdits) GetHostIpc() bool {
	if x != nil {
		return x.HostIpc
	}
	return false
}

func (x *ContainerEdits) GetAnnotations() map[string]string {
	if x != nil {
		return x.Annotations
	}
	return nil
}

func (x *ContainerEdits) GetNetworks() []string {
	if x != nil {
		return x.Networks
	}
	return nil
}

type DeviceNode struct {
	state    protoimpl.MessageState `protogen:"open.v1"`
	Path     string                 `protobuf:"bytes,1,opt,name=path,proto3" json:"path,omitempty"`                         // in the container
	HostPath string                 `protobuf:"bytes,2,opt,name=host_path,json=hostPath,proto3" json:"host_path,omitempty"` // empty = the same
	// With type, major and minor the host's node need not exist; UNSPECIFIED =
	// the agent looks at host_path.
	Type          DeviceNode_Type `protobuf:"varint,3,opt,name=type,proto3,enum=berth.accelerator.v1.DeviceNode_Type" json:"type,omitempty"`
	Major         uint32          `protobuf:"varint,4,opt,name=major,proto3" json:"major,omitempty"`
	Minor         uint32          `protobuf:"varint,5,opt,name=minor,proto3" json:"minor,omitempty"`
	Permissions   string          `protobuf:"bytes,6,opt,name=permissions,proto3" json:"permissions,omitempty"` // of "rwm"; empty = "rw"
	Optional      bool            `protobuf:"varint,7,opt,name=optional,proto3" json:"optional,omitempty"`      // absent on the host = left out
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *DeviceNode) Reset() {
	*x = DeviceNode{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[21]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *DeviceNode) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*DeviceNode) ProtoMessage() {}

func (x *DeviceNode) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[21]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use DeviceNode.ProtoReflect.Descriptor instead.
func (*DeviceNode) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{21}
}

func (x *DeviceNode) GetPath() string {
	if x != nil {
		return x.Path
	}
	return ""
}

func (x *DeviceNode) GetHostPath() string {
	if x != nil {
		return x.HostPath
	}
	return ""
}

func (x *DeviceNode) GetType() DeviceNode_Type {
	if x != nil {
		return x.Type
	}
	return DeviceNode_UNSPECIFIED
}

func (x *DeviceNode) GetMajor() uint32 {
	if x != nil {
		return x.Major
	}
	return 0
}

func (x *DeviceNode) GetMinor() uint32 {
	if x != nil {
		return x.Minor
	}
	return 0
}

func (x *DeviceNode) GetPermissions() string {
	if x != nil {
		return x.Permissions
	}
	return ""
}

func (x *DeviceNode) GetOptional() bool {
	if x != nil {
		return x.Optional
	}
	return false
}

type Mount struct {
	state         protoimpl.MessageState `protogen:"open.v1"`
	Source        string                 `protobuf:"bytes,1,opt,name=source,proto3" json:"source,omitempty"` // on the host, absolute
	Target        string                 `protobuf:"bytes,2,opt,name=target,proto3" json:"target,omitempty"` // in the container, absolute
	Writable      bool                   `protobuf:"varint,3,opt,name=writable,proto3" json:"writable,omitempty"`
	Recursive     bool                   `protobuf:"varint,4,opt,name=recursive,proto3" json:"recursive,omitempty"`
	Optional      bool                   `protobuf:"varint,5,opt,name=optional,proto3" json:"optional,omitempty"` // absent on the host = left out
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *Mount) Reset() {
	*x = Mount{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[22]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *Mount) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*Mount) ProtoMessage() {}

func (x *Mount) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[22]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use Mount.ProtoReflect.Descriptor instead.
func (*Mount) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{22}
}

func (x *Mount) GetSource() string {
	if x != nil {
		return x.Source
	}
	return ""
}

func (x *Mount) GetTarget() string {
	if x != nil {
		return x.Target
	}
	return ""
}

func (x *Mount) GetWritable() bool {
	if x != nil {
		return x.Writable
	}
	return false
}

func (x *Mount) GetRecursive() bool {
	if x != nil {
		return x.Recursive
	}
	return false
}

func (x *Mount) GetOptional() bool {
	if x != nil {
		return x.Optional
	}
	return false
}

type Rlimit struct {
	state         protoimpl.MessageState `protogen:"open.v1"`
	Name          string                 `protobuf:"bytes,1,opt,name=name,proto3" json:"name,omitempty"`
	Soft          uint64                 `protobuf:"varint,2,opt,name=soft,proto3" json:"soft,omitempty"`
	Hard          uint64                 `protobuf:"varint,3,opt,name=hard,proto3" json:"hard,omitempty"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *Rlimit) Reset() {
	*x = Rlimit{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[23]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *Rlimit) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*Rlimit) ProtoMessage() {}

func (x *Rlimit) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[23]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use Rlimit.ProtoReflect.Descriptor instead.
func (*Rlimit) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{23}
}

func (x *Rlimit) GetName() string {
	if x != nil {
		return x.Name
	}
	return ""
}

func (x *Rlimit) GetSoft() uint64 {
	if x != nil {
		return x.Soft
	}
	return 0
}

func (x *Rlimit) GetHard() uint64 {
	if x != nil {
		return x.Hard
	}
	return 0
}

type UnprepareRequest struct {
	state         protoimpl.MessageState `protogen:"open.v1"`
	AllocationId  string                 `protobuf:"bytes,1,opt,name=allocation_id,json=allocationId,proto3" json:"allocation_id,omitempty"`
	State         []byte                 `protobuf:"bytes,2,opt,name=state,proto3" json:"state,omitempty"` // what Prepare returned, empty when that never came
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *UnprepareRequest) Reset() {
	*x = UnprepareRequest{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[24]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *UnprepareRequest) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*UnprepareRequest) ProtoMessage() {}

func (x *UnprepareRequest) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[24]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use UnprepareRequest.ProtoReflect.Descriptor instead.
func (*UnprepareRequest) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{24}
}

func (x *UnprepareRequest) GetAllocationId() string {
	if x != nil {
		return x.AllocationId
	}
	return ""
}

func (x *UnprepareRequest) GetState() []byte {
	if x != nil {
		return x.State
	}
	return nil
}

type UnprepareResponse struct {
	state         protoimpl.MessageState `protogen:"open.v1"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *UnprepareResponse) Reset() {
	*x = UnprepareResponse{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[25]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *UnprepareResponse) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*UnprepareResponse) ProtoMessage() {}

func (x *UnprepareResponse) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[25]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use UnprepareResponse.ProtoReflect.Descriptor instead.
func (*UnprepareResponse) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{25}
}

type RestoreRequest struct {
	state         protoimpl.MessageState `protogen:"open.v1"`
	Live          []*LiveAllocation      `protobuf:"bytes,1,rep,name=live,proto3" json:"live,omitempty"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *RestoreRequest) Reset() {
	*x = RestoreRequest{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[26]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *RestoreRequest) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*RestoreRequest) ProtoMessage() {}

func (x *RestoreRequest) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[26]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use RestoreRequest.ProtoReflect.Descriptor instead.
func (*RestoreRequest) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{26}
}

func (x *RestoreRequest) GetLive() []*LiveAllocation {
	if x != nil {
		return x.Live
	}
	return nil
}

type LiveAllocation struct {
	state         protoimpl.MessageState `protogen:"open.v1"`
	AllocationId  string                 `protobuf:"bytes,1,opt,name=allocation_id,json=allocationId,proto3" json:"allocation_id,omitempty"`
	Allocations   []*Allocation          `protobuf:"bytes,2,rep,name=allocations,proto3" json:"allocations,omitempty"`
	State         []byte                 `protobuf:"bytes,3,opt,name=state,proto3" json:"state,omitempty"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *LiveAllocation) Reset() {
	*x = LiveAllocation{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[27]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *LiveAllocation) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*LiveAllocation) ProtoMessage() {}

func (x *LiveAllocation) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[27]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use LiveAllocation.ProtoReflect.Descriptor instead.
func (*LiveAllocation) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{27}
}

func (x *LiveAllocation) GetAllocationId() string {
	if x != nil {
		return x.AllocationId
	}
	return ""
}

func (x *LiveAllocation) GetAllocations() []*Allocation {
	if x != nil {
		return x.Allocations
	}
	return nil
}

func (x *LiveAllocation) GetState() []byte {
	if x != nil {
		return x.State
	}
	return nil
}

// Restore answers OK even when single allocations have problems; it never ends
// a workload.
type RestoreResponse struct {
	state         protoimpl.MessageState `protogen:"open.v1"`
	Problems      []*RestoreProblem      `protobuf:"bytes,1,rep,name=problems,proto3" json:"problems,omitempty"`
	LeaksRemoved  []string               `protobuf:"bytes,2,rep,name=leaks_removed,json=leaksRemoved,proto3" json:"leaks_removed,omitempty"` // for the log: what was undone
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *RestoreResponse) Reset() {
	*x = RestoreResponse{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[28]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *RestoreResponse) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*RestoreResponse) ProtoMessage() {}

func (x *RestoreResponse) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[28]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use RestoreResponse.ProtoReflect.Descriptor instead.
func (*RestoreResponse) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{28}
}

func (x *RestoreResponse) GetProblems() []*RestoreProblem {
	if x != nil {
		return x.Problems
	}
	return nil
}

func (x *RestoreResponse) GetLeaksRemoved() []string {
	if x != nil {
		return x.LeaksRemoved
	}
	return nil
}

type RestoreProblem struct {
	state         protoimpl.MessageState `protogen:"open.v1"`
	AllocationId  string                 `protobuf:"bytes,1,opt,name=allocation_id,json=allocationId,proto3" json:"allocation_id,omitempty"`
	DeviceId      string                 `protobuf:"bytes,2,opt,name=device_id,json=deviceId,proto3" json:"device_id,omitempty"`
	Message       string                 `protobuf:"bytes,3,opt,name=message,proto3" json:"message,omitempty"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *RestoreProblem) Reset() {
	*x = RestoreProblem{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[29]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *RestoreProblem) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*RestoreProblem) ProtoMessage() {}

func (x *RestoreProblem) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[29]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use RestoreProblem.ProtoReflect.Descriptor instead.
func (*RestoreProblem) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{29}
}

func (x *RestoreProblem) GetAllocationId() string {
	if x != nil {
		return x.AllocationId
	}
	return ""
}

func (x *RestoreProblem) GetDeviceId() string {
	if x != nil {
		return x.DeviceId
	}
	return ""
}

func (x *RestoreProblem) GetMessage() string {
	if x != nil {
		return x.Message
	}
	return ""
}

type WatchNodeMetricsRequest struct {
	state         protoimpl.MessageState `protogen:"open.v1"`
	IntervalMs    uint32                 `protobuf:"varint,1,opt,name=interval_ms,json=intervalMs,proto3" json:"interval_ms,omitempty"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *WatchNodeMetricsRequest) Reset() {
	*x = WatchNodeMetricsRequest{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[30]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *WatchNodeMetricsRequest) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*WatchNodeMetricsRequest) ProtoMessage() {}

func (x *WatchNodeMetricsRequest) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[30]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use WatchNodeMetricsRequest.ProtoReflect.Descriptor instead.
func (*WatchNodeMetricsRequest) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{30}
}

func (x *WatchNodeMetricsRequest) GetIntervalMs() uint32 {
	if x != nil {
		return x.IntervalMs
	}
	return 0
}

type NodeSample struct {
	state         protoimpl.MessageState `protogen:"open.v1"`
	UnixMs        int64                  `protobuf:"varint,1,opt,name=unix_ms,json=unixMs,proto3" json:"unix_ms,omitempty"`
	Metrics       []*Metric              `protobuf:"bytes,2,rep,name=metrics,proto3" json:"metrics,omitempty"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *NodeSample) Reset() {
	*x = NodeSample{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[31]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *NodeSample) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*NodeSample) ProtoMessage() {}

func (x *NodeSample) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[31]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use NodeSample.ProtoReflect.Descriptor instead.
func (*NodeSample) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{31}
}

func (x *NodeSample) GetUnixMs() int64 {
	if x != nil {
		return x.UnixMs
	}
	return 0
}

func (x *NodeSample) GetMetrics() []*Metric {
	if x != nil {
		return x.Metrics
	}
	return nil
}

type Metric struct {
	state protoimpl.MessageState `protogen:"open.v1"`
	// "<key>_util", "<key>_mem", "<key>_power", "<key>_temperature" and others
	// that begin with the key. Each at most once for a device.
	Name     string   `protobuf:"bytes,1,opt,name=name,proto3" json:"name,omitempty"`
	DeviceId string   `protobuf:"bytes,2,opt,name=device_id,json=deviceId,proto3" json:"device_id,omitempty"`
	Value    float64  `protobuf:"fixed64,3,opt,name=value,proto3" json:"value,omitempty"`
	Capacity *float64 `protobuf:"fixed64,4,opt,name=capacity,proto3,oneof" json:"capacity,omitempty"` // value never exceeds it
	// percent, bytes, watt, joule, celsius, mhz, count; of a RATE, of a second's worth
	Unit          string         `protobuf:"bytes,5,opt,name=unit,proto3" json:"unit,omitempty"`
	Kind          Metric_Kind    `protobuf:"varint,6,opt,name=kind,proto3,enum=berth.accelerator.v1.Metric_Kind" json:"kind,omitempty"`
	Quality       Metric_Quality `protobuf:"varint,7,opt,name=quality,proto3,enum=berth.accelerator.v1.Metric_Quality" json:"quality,omitempty"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *Metric) Reset() {
	*x = Metric{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[32]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *Metric) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*Metric) ProtoMessage() {}

func (x *Metric) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[32]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use Metric.ProtoReflect.Descriptor instead.
func (*Metric) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{32}
}

func (x *Metric) GetName() string {
	if x != nil {
		return x.Name
	}
	return ""
}

func (x *Metric) GetDeviceId() string {
	if x != nil {
		return x.DeviceId
	}
	return ""
}

func (x *Metric) GetValue() float64 {
	if x != nil {
		return x.Value
	}
	return 0
}

func (x *Metric) GetCapacity() float64 {
	if x != nil && x.Capacity != nil {
		return *x.Capacity
	}
	return 0
}

func (x *Metric) GetUnit() string {
	if x != nil {
		return x.Unit
	}
	return ""
}

func (x *Metric) GetKind() Metric_Kind {
	if x != nil {
		return x.Kind
	}
	return Metric_UNSPECIFIED
}

func (x *Metric) GetQuality() Metric_Quality {
	if x != nil {
		return x.Quality
	}
	return Metric_UNKNOWN
}

type WorkloadSet struct {
	state         protoimpl.MessageState `protogen:"open.v1"`
	IntervalMs    uint32                 `protobuf:"varint,1,opt,name=interval_ms,json=intervalMs,proto3" json:"interval_ms,omitempty"` // 0 = 5000
	Workloads     []*Workload            `protobuf:"bytes,2,rep,name=workloads,proto3" json:"workloads,omitempty"`
	PerProcess    bool                   `protobuf:"varint,3,opt,name=per_process,json=perProcess,proto3" json:"per_process,omitempty"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *WorkloadSet) Reset() {
	*x = WorkloadSet{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[33]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *WorkloadSet) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*WorkloadSet) ProtoMessage() {}

func (x *WorkloadSet) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[33]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use WorkloadSet.ProtoReflect.Descriptor instead.
func (*WorkloadSet) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{33}
}

func (x *WorkloadSet) GetIntervalMs() uint32 {
	if x != nil {
		return x.IntervalMs
	}
	return 0
}

func (x *WorkloadSet) GetWorkloads() []*Workload {
	if x != nil {
		return x.Workloads
	}
	return nil
}

func (x *WorkloadSet) GetPerProcess() bool {
	if x != nil {
		return x.PerProcess
	}
	return false
}

type Workload struct {
	state         protoimpl.MessageState `protogen:"open.v1"`
	AllocationId  string                 `protobuf:"bytes,1,opt,name=allocation_id,json=allocationId,proto3" json:"allocation_id,omitempty"`
	Allocations   []*Allocation          `protobuf:"bytes,2,rep,name=allocations,proto3" json:"allocations,omitempty"`
	ContainerId   string                 `protobuf:"bytes,3,opt,name=container_id,json=containerId,proto3" json:"container_id,omitempty"`
	CgroupPath    string                 `protobuf:"bytes,4,opt,name=cgroup_path,json=cgroupPath,proto3" json:"cgroup_path,omitempty"` // below the cgroup root
	HostPids      []int32                `protobuf:"varint,5,rep,packed,name=host_pids,json=hostPids,proto3" json:"host_pids,omitempty"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *Workload) Reset() {
	*x = Workload{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[34]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *Workload) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*Workload) ProtoMessage() {}

func (x *Workload) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[34]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use Workload.ProtoReflect.Descriptor instead.
func (*Workload) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{34}
}

func (x *Workload) GetAllocationId() string {
	if x != nil {
		return x.AllocationId
	}
	return ""
}

func (x *Workload) GetAllocations() []*Allocation {
	if x != nil {
		return x.Allocations
	}
	return nil
}

func (x *Workload) GetContainerId() string {
	if x != nil {
		return x.ContainerId
	}
	return ""
}

func (x *Workload) GetCgroupPath() string {
	if x != nil {
		return x.CgroupPath
	}
	return ""
}

func (x *Workload) GetHostPids() []int32 {
	if x != nil {
		return x.HostPids
	}
	return nil
}

type WorkloadSample struct {
	state         protoimpl.MessageState `protogen:"open.v1"`
	UnixMs        int64                  `protobuf:"varint,1,opt,name=unix_ms,json=unixMs,proto3" json:"unix_ms,omitempty"`
	Workloads     []*WorkloadMetrics     `protobuf:"bytes,2,rep,name=workloads,proto3" json:"workloads,omitempty"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *WorkloadSample) Reset() {
	*x = WorkloadSample{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[35]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *WorkloadSample) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*WorkloadSample) ProtoMessage() {}

func (x *WorkloadSample) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[35]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use WorkloadSample.ProtoReflect.Descriptor instead.
func (*WorkloadSample) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{35}
}

func (x *WorkloadSample) GetUnixMs() int64 {
	if x != nil {
		return x.UnixMs
	}
	return 0
}

func (x *WorkloadSample) GetWorkloads() []*WorkloadMetrics {
	if x != nil {
		return x.Workloads
	}
	return nil
}

type WorkloadMetrics struct {
	state         protoimpl.MessageState `protogen:"open.v1"`
	AllocationId  string                 `protobuf:"bytes,1,opt,name=allocation_id,json=allocationId,proto3" json:"allocation_id,omitempty"`
	Metrics       []*Metric              `protobuf:"bytes,2,rep,name=metrics,proto3" json:"metrics,omitempty"`
	Processes     []*ProcessMetrics      `protobuf:"bytes,3,rep,name=processes,proto3" json:"processes,omitempty"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *WorkloadMetrics) Reset() {
	*x = WorkloadMetrics{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[36]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *WorkloadMetrics) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*WorkloadMetrics) ProtoMessage() {}

func (x *WorkloadMetrics) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[36]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use WorkloadMetrics.ProtoReflect.Descriptor instead.
func (*WorkloadMetrics) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{36}
}

func (x *WorkloadMetrics) GetAllocationId() string {
	if x != nil {
		return x.AllocationId
	}
	return ""
}

func (x *WorkloadMetrics) GetMetrics() []*Metric {
	if x != nil {
		return x.Metrics
	}
	return nil
}

func (x *WorkloadMetrics) GetProcesses() []*ProcessMetrics {
	if x != nil {
		return x.Processes
	}
	return nil
}

type ProcessMetrics struct {
	state         protoimpl.MessageState `protogen:"open.v1"`
	HostPid       int32                  `protobuf:"varint,1,opt,name=host_pid,json=hostPid,proto3" json:"host_pid,omitempty"`
	Metrics       []*Metric              `protobuf:"bytes,2,rep,name=metrics,proto3" json:"metrics,omitempty"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *ProcessMetrics) Reset() {
	*x = ProcessMetrics{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[37]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *ProcessMetrics) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*ProcessMetrics) ProtoMessage() {}

func (x *ProcessMetrics) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[37]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use ProcessMetrics.ProtoReflect.Descriptor instead.
func (*ProcessMetrics) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{37}
}

func (x *ProcessMetrics) GetHostPid() int32 {
	if x != nil {
		return x.HostPid
	}
	return 0
}

func (x *ProcessMetrics) GetMetrics() []*Metric {
	if x != nil {
		return x.Metrics
	}
	return nil
}

type WatchHealthRequest struct {
	state         protoimpl.MessageState `protogen:"open.v1"`
	unknownFields protoimpl.UnknownFields
	sizeCache     protoimpl.SizeCache
}

func (x *WatchHealthRequest) Reset() {
	*x = WatchHealthRequest{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[38]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *WatchHealthRequest) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*WatchHealthRequest) ProtoMessage() {}

func (x *WatchHealthRequest) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[38]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use WatchHealthRequest.ProtoReflect.Descriptor instead.
func (*WatchHealthRequest) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{38}
}

type HealthEvent struct {
	state    protoimpl.MessageState `protogen:"open.v1"`
	UnixMs   int64                  `protobuf:"varint,1,opt,name=unix_ms,json=unixMs,proto3" json:"unix_ms,omitempty"`
	DeviceId string                 `protobuf:"bytes,2,opt,name=device_id,json=deviceId,proto3" json:"device_id,omitempty"`
	Health   Health                 `protobuf:"varint,3,opt,name=health,proto3,enum=berth.accelerator.v1.Health" json:"health,omitempty"`
	Code     string                 `protobuf:"bytes,4,opt,name=code,proto3" json:"code,omitempty"` // the vendor's: "XID 79"
	Message  string                 `protobuf:"bytes,5,opt,name=message,proto3" json:"message,omitempty"`
	// The device's running workloads cannot continue.
	FatalToWorkloads bool `protobuf:"varint,6,opt,name=fatal_to_workloads,json=fatalToWorkloads,proto3" json:"fatal_to_workloads,omitempty"`
	unknownFields    protoimpl.UnknownFields
	sizeCache        protoimpl.SizeCache
}

func (x *HealthEvent) Reset() {
	*x = HealthEvent{}
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[39]
	ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
	ms.StoreMessageInfo(mi)
}

func (x *HealthEvent) String() string {
	return protoimpl.X.MessageStringOf(x)
}

func (*HealthEvent) ProtoMessage() {}

func (x *HealthEvent) ProtoReflect() protoreflect.Message {
	mi := &file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[39]
	if x != nil {
		ms := protoimpl.X.MessageStateOf(protoimpl.Pointer(x))
		if ms.LoadMessageInfo() == nil {
			ms.StoreMessageInfo(mi)
		}
		return ms
	}
	return mi.MessageOf(x)
}

// Deprecated: Use HealthEvent.ProtoReflect.Descriptor instead.
func (*HealthEvent) Descriptor() ([]byte, []int) {
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP(), []int{39}
}

func (x *HealthEvent) GetUnixMs() int64 {
	if x != nil {
		return x.UnixMs
	}
	return 0
}

func (x *HealthEvent) GetDeviceId() string {
	if x != nil {
		return x.DeviceId
	}
	return ""
}

func (x *HealthEvent) GetHealth() Health {
	if x != nil {
		return x.Health
	}
	return Health_HEALTH_UNKNOWN
}

func (x *HealthEvent) GetCode() string {
	if x != nil {
		return x.Code
	}
	return ""
}

func (x *HealthEvent) GetMessage() string {
	if x != nil {
		return x.Message
	}
	return ""
}

func (x *HealthEvent) GetFatalToWorkloads() bool {
	if x != nil {
		return x.FatalToWorkloads
	}
	return false
}

var File_plugins_accelerator_acceleratorpb_accelerator_proto protoreflect.FileDescriptor

const file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDesc = "" +
	"\n" +
	"3plugins/accelerator/acceleratorpb/accelerator.proto\x12\x14berth.accelerator.v1\"|\n" +
	"\x0fDescribeRequest\x12#\n" +
	"\ragent_version\x18\x01 \x01(\tR\fagentVersion\x12\x1b\n" +
	"\tnode_name\x18\x02 \x01(\tR\bnodeName\x12 \n" +
	"\vincarnation\x18\x03 \x01(\tR\vincarnationJ\x05\bd\x10\xc8\x01\"\xc8\x02\n" +
	"\x10DescribeResponse\x12\x10\n" +
	"\x03key\x18\x01 \x01(\tR\x03key\x12%\n" +
	"\x0eplugin_version\x18\x02 \x01(\tR\rpluginVersion\x12\x16\n" +
	"\x06vendor\x18\x03 \x01(\tR\x06vendor\x12D\n" +
	"\fcapabilities\x18\x04 \x03(\x0e2 .berth.accelerator.v1.CapabilityR\fcapabilities\x124\n" +
	"\x05slots\x18\x05 \x03(\v2\x1e.berth.accelerator.v1.SlotTypeR\x05slots\x12#\n" +
	"\rconfig_schema\x18\x06 \x01(\fR\fconfigSchema\x12\x1f\n" +
	"\vpci_vendors\x18\a \x03(\tR\n" +
	"pciVendors\x12\x1a\n" +
	"\bfamilies\x18\b \x03(\tR\bfamiliesJ\x05\bd\x10\xc8\x01\"\x9d\x01\n" +
	"\x10ConfigureRequest\x12\x1f\n" +
	"\vconfig_json\x18\x01 \x01(\fR\n" +
	"configJson\x121\n" +
	"\x05roots\x18\x02 \x01(\v2\x1b.berth.accelerator.v1.RootsR\x05roots\x12\x1f\n" +
	"\vdevice_mask\x18\x03 \x03(\tR\n" +
	"deviceMaskJ\x04\b\x04\x10\x05J\x05\bd\x10\xc8\x01R\adry_run\"/\n" +
	"\x11ConfigureResponse\x12\x1a\n" +
	"\bwarnings\x18\x01 \x03(\tR\bwarnings\"\x88\x01\n" +
	"\x05Roots\x12\x10\n" +
	"\x03sys\x18\x01 \x01(\tR\x03sys\x12\x10\n" +
	"\x03dev\x18\x02 \x01(\tR\x03dev\x12\x12\n" +
	"\x04proc\x18\x03 \x01(\tR\x04proc\x12\x16\n" +
	"\x06driver\x18\x04 \x01(\tR\x06driver\x12\x12\n" +
	"\x04path\x18\x05 \x03(\tR\x04path\x12\x14\n" +
	"\x05state\x18\x06 \x01(\tR\x05stateJ\x05\bd\x10\xc8\x01\"\x12\n" +
	"\x10PreflightRequest\"\xe1\x01\n" +
	"\x11PreflightResponse\x123\n" +
	"\x06checks\x18\x01 \x03(\v2\x1b.berth.accelerator.v1.CheckR\x06checks\x12X\n" +
	"\vdriver_info\x18\x02 \x03(\v27.berth.accelerator.v1.PreflightResponse.DriverInfoEntryR\n" +
	"driverInfo\x1a=\n" +
	"\x0fDriverInfoEntry\x12\x10\n" +
	"\x03key\x18\x01 \x01(\tR\x03key\x12\x14\n" +
	"\x05value\x18\x02 \x01(\tR\x05value:\x028\x01\"f\n" +
	"\x05Check\x12\x12\n" +
	"\x04name\x18\x01 \x01(\tR\x04name\x12\x0e\n" +
	"\x02ok\x18\x02 \x01(\bR\x02ok\x12\x16\n" +
	"\x06detail\x18\x03 \x01(\tR\x06detail\x12\x1a\n" +
	"\boptional\x18\x04 \x01(\bR\boptionalJ\x05\bd\x10\xc8\x01\"\xa3\x03\n" +
	"\bSlotType\x12\x12\n" +
	"\x04name\x18\x01 \x01(\tR\x04name\x127\n" +
	"\x04kind\x18\x02 \x01(\x0e2#.berth.accelerator.v1.SlotType.KindR\x04kind\x12\x18\n" +
	"\aquantum\x18\x03 \x01(\tR\aquantum\x12%\n" +
	"\x0eexclusive_with\x18\x04 \x03(\tR\rexclusiveWith\x12%\n" +
	"\x0eallowed_counts\x18\x05 \x03(\rR\rallowedCounts\x12!\n" +
	"\fdisplay_name\x18\x06 \x01(\tR\vdisplayName\x12 \n" +
	"\vdescription\x18\a \x01(\tR\vdescription\x12\x12\n" +
	"\x04unit\x18\b \x01(\tR\x04unit\x12\x12\n" +
	"\x04icon\x18\t \x01(\tR\x04icon\x12\x18\n" +
	"\aunified\x18\n" +
	" \x01(\bR\aunified\"T\n" +
	"\x04Kind\x12\x0f\n" +
	"\vUNSPECIFIED\x10\x00\x12\t\n" +
	"\x05COUNT\x10\x01\x12\t\n" +
	"\x05BYTES\x10\x02\x12\n" +
	"\n" +
	"\x06SHARES\x10\x03\x12\n" +
	"\n" +
	"\x06UNIQUE\x10\x04\"\x04\b\x05\x10\x05*\aUNIFIEDJ\x05\bd\x10\xc8\x01\"\x15\n" +
	"\x13WatchDevicesRequest\"\xd7\x03\n" +
	"\x0eDeviceSnapshot\x12\x1a\n" +
	"\brevision\x18\x01 \x01(\x04R\brevision\x126\n" +
	"\adevices\x18\x02 \x03(\v2\x1c.berth.accelerator.v1.DeviceR\adevices\x12<\n" +
	"\bcounters\x18\x03 \x03(\v2 .berth.accelerator.v1.CounterSetR\bcounters\x120\n" +
	"\x05links\x18\x04 \x03(\v2\x1a.berth.accelerator.v1.LinkR\x05links\x12U\n" +
	"\vdriver_info\x18\x05 \x03(\v24.berth.accelerator.v1.DeviceSnapshot.DriverInfoEntryR\n" +
	"driverInfo\x124\n" +
	"\x05slots\x18\x06 \x03(\v2\x1e.berth.accelerator.v1.SlotTypeR\x05slots\x12.\n" +
	"\x04look\x18\a \x01(\v2\x1a.berth.accelerator.v1.LookR\x04look\x1a=\n" +
	"\x0fDriverInfoEntry\x12\x10\n" +
	"\x03key\x18\x01 \x01(\tR\x03key\x12\x14\n" +
	"\x05value\x18\x02 \x01(\tR\x05value:\x028\x01J\x05\bd\x10\xc8\x01\"\xad\x01\n" +
	"\x04Look\x126\n" +
	"\x05state\x18\x01 \x01(\x0e2 .berth.accelerator.v1.Look.StateR\x05state\x12\x18\n" +
	"\amessage\x18\x02 \x01(\tR\amessage\"L\n" +
	"\x05State\x12\x0f\n" +
	"\vUNSPECIFIED\x10\x00\x12\f\n" +
	"\bCOMPLETE\x10\x01\x12\v\n" +
	"\aPARTIAL\x10\x02\x12\n" +
	"\n" +
	"\x06FAILED\x10\x03\x12\v\n" +
	"\aHANGING\x10\x04J\x05\bd\x10\xc8\x01\"\xb4\x06\n" +
	"\x06Device\x12\x0e\n" +
	"\x02id\x18\x01 \x01(\tR\x02id\x12\x14\n" +
	"\x05model\x18\x02 \x01(\tR\x05model\x12\x16\n" +
	"\x06serial\x18\x03 \x01(\tR\x06serial\x12\x1f\n" +
	"\vpci_address\x18\x04 \x01(\tR\n" +
	"pciAddress\x12 \n" +
	"\tnuma_node\x18\x05 \x01(\x05H\x00R\bnumaNode\x88\x01\x01\x12\x1b\n" +
	"\tpcie_root\x18\x06 \x01(\tR\bpcieRoot\x12!\n" +
	"\fmemory_bytes\x18\a \x01(\x04R\vmemoryBytes\x12)\n" +
	"\x10processing_units\x18\b \x01(\rR\x0fprocessingUnits\x12L\n" +
	"\n" +
	"attributes\x18\t \x03(\v2,.berth.accelerator.v1.Device.AttributesEntryR\n" +
	"attributes\x12F\n" +
	"\bcapacity\x18\n" +
	" \x03(\v2*.berth.accelerator.v1.Device.CapacityEntryR\bcapacity\x12<\n" +
	"\bconsumes\x18\v \x03(\v2 .berth.accelerator.v1.CounterUseR\bconsumes\x12\x16\n" +
	"\x06groups\x18\f \x03(\tR\x06groups\x124\n" +
	"\x06health\x18\r \x01(\x0e2\x1c.berth.accelerator.v1.HealthR\x06health\x12%\n" +
	"\x0ehealth_message\x18\x0e \x01(\tR\rhealthMessage\x12 \n" +
	"\vallocatable\x18\x0f \x01(\bR\vallocatable\x12%\n" +
	"\x0ereject_reasons\x18\x10 \x03(\tR\rrejectReasons\x12\x1b\n" +
	"\tparent_id\x18\x11 \x01(\tR\bparentId\x1a=\n" +
	"\x0fAttributesEntry\x12\x10\n" +
	"\x03key\x18\x01 \x01(\tR\x03key\x12\x14\n" +
	"\x05value\x18\x02 \x01(\tR\x05value:\x028\x01\x1a;\n" +
	"\rCapacityEntry\x12\x10\n" +
	"\x03key\x18\x01 \x01(\tR\x03key\x12\x14\n" +
	"\x05value\x18\x02 \x01(\tR\x05value:\x028\x01B\f\n" +
	"\n" +
	"_numa_nodeJ\x05\bd\x10\xc8\x01\"\xa9\x01\n" +
	"\n" +
	"CounterSet\x12\x12\n" +
	"\x04name\x18\x01 \x01(\tR\x04name\x12J\n" +
	"\bcounters\x18\x02 \x03(\v2..berth.accelerator.v1.CounterSet.CountersEntryR\bcounters\x1a;\n" +
	"\rCountersEntry\x12\x10\n" +
	"\x03key\x18\x01 \x01(\tR\x03key\x12\x14\n" +
	"\x05value\x18\x02 \x01(\tR\x05value:\x028\x01\"\xa3\x01\n" +
	"\n" +
	"CounterUse\x12\x10\n" +
	"\x03set\x18\x01 \x01(\tR\x03set\x12G\n" +
	"\aamounts\x18\x02 \x03(\v2-.berth.accelerator.v1.CounterUse.AmountsEntryR\aamounts\x1a:\n" +
	"\fAmountsEntry\x12\x10\n" +
	"\x03key\x18\x01 \x01(\tR\x03key\x12\x14\n" +
	"\x05value\x18\x02 \x01(\tR\x05value:\x028\x01\"\xf7\x01\n" +
	"\x04Link\x12\f\n" +
	"\x01a\x18\x01 \x01(\tR\x01a\x12\f\n" +
	"\x01b\x18\x02 \x01(\tR\x01b\x123\n" +
	"\x04type\x18\x03 \x01(\x0e2\x1f.berth.accelerator.v1.Link.TypeR\x04type\x12\x1a\n" +
	"\bdistance\x18\x04 \x01(\rR\bdistance\x12\x12\n" +
	"\x04gbps\x18\x05 \x01(\x01R\x04gbps\x12\x10\n" +
	"\x03p2p\x18\x06 \x01(\bR\x03p2p\"U\n" +
	"\x04Type\x12\v\n" +
	"\aUNKNOWN\x10\x00\x12\b\n" +
	"\x04PCIE\x10\x01\x12\n" +
	"\n" +
	"\x06NVLINK\x10\x02\x12\b\n" +
	"\x04XGMI\x10\x03\x12\a\n" +
	"\x03NIC\x10\x04\x12\a\n" +
	"\x03NOC\x10\x05\x12\x0e\n" +
	"\n" +
	"SAME_BOARD\x10\x06J\x05\bd\x10\xc8\x01\"U\n" +
	"\n" +
	"Allocation\x12\x12\n" +
	"\x04slot\x18\x01 \x01(\tR\x04slot\x12\x1b\n" +
	"\tdevice_id\x18\x02 \x01(\tR\bdeviceId\x12\x16\n" +
	"\x06amount\x18\x03 \x01(\tR\x06amount\"\xb0\x03\n" +
	"\x0ePrepareRequest\x12#\n" +
	"\rallocation_id\x18\x01 \x01(\tR\fallocationId\x12\x1b\n" +
	"\tkernel_id\x18\x02 \x01(\tR\bkernelId\x12\x1d\n" +
	"\n" +
	"session_id\x18\x03 \x01(\tR\tsessionId\x12B\n" +
	"\vallocations\x18\x04 \x03(\v2 .berth.accelerator.v1.AllocationR\vallocations\x12\x19\n" +
	"\bwork_dir\x18\x06 \x01(\tR\aworkDir\x12!\n" +
	"\ftrust_domain\x18\a \x01(\tR\vtrustDomain\x12K\n" +
	"\aoptions\x18\b \x03(\v21.berth.accelerator.v1.PrepareRequest.OptionsEntryR\aoptions\x1a:\n" +
	"\fOptionsEntry\x12\x10\n" +
	"\x03key\x18\x01 \x01(\tR\x03key\x12\x14\n" +
	"\x05value\x18\x02 \x01(\tR\x05value:\x028\x01J\x04\b\x05\x10\x06J\x05\bd\x10\xc8\x01R\x12image_architectureR\x11snapshot_revision\"\xcb\x02\n" +
	"\x0fPrepareResponse\x12:\n" +
	"\x05edits\x18\x01 \x01(\v2$.berth.accelerator.v1.ContainerEditsR\x05edits\x12@\n" +
	"\battached\x18\x02 \x03(\v2$.berth.accelerator.v1.AttachedDeviceR\battached\x12\\\n" +
	"\rresource_data\x18\x03 \x03(\v27.berth.accelerator.v1.PrepareResponse.ResourceDataEntryR\fresourceData\x12\x14\n" +
	"\x05state\x18\x04 \x01(\fR\x05state\x1a?\n" +
	"\x11ResourceDataEntry\x12\x10\n" +
	"\x03key\x18\x01 \x01(\tR\x03key\x12\x14\n" +
	"\x05value\x18\x02 \x01(\tR\x05value:\x028\x01J\x05\bd\x10\xc8\x01\"\x98\x01\n" +
	"\x0eAttachedDevice\x12\x1b\n" +
	"\tdevice_id\x18\x01 \x01(\tR\bdeviceId\x12\x14\n" +
	"\x05model\x18\x02 \x01(\tR\x05model\x12!\n" +
	"\fmemory_bytes\x18\x03 \x01(\x04R\vmemoryBytes\x12)\n" +
	"\x10processing_units\x18\x04 \x01(\rR\x0fprocessingUnitsJ\x05\bd\x10\xc8\x01\"\xe8\x06\n" +
	"\x0eContainerEdits\x12C\n" +
	"\fdevice_nodes\x18\x01 \x03(\v2 .berth.accelerator.v1.DeviceNodeR\vdeviceNodes\x123\n" +
	"\x06mounts\x18\x02 \x03(\v2\x1b.berth.accelerator.v1.MountR\x06mounts\x12?\n" +
	"\x03env\x18\x03 \x03(\v2-.berth.accelerator.v1.ContainerEdits.EnvEntryR\x03env\x12!\n" +
	"\flibrary_dirs\x18\x04 \x03(\tR\vlibraryDirs\x12!\n" +
	"\fpreload_libs\x18\x05 \x03(\tR\vpreloadLibs\x12'\n" +
	"\x0fadditional_gids\x18\x06 \x03(\rR\x0eadditionalGids\x126\n" +
	"\arlimits\x18\a \x03(\v2\x1c.berth.accelerator.v1.RlimitR\arlimits\x12\"\n" +
	"\fcapabilities\x18\b \x03(\tR\fcapabilities\x12\x1a\n" +
	"\bsyscalls\x18\t \x03(\tR\bsyscalls\x12K\n" +
	"\asysctls\x18\n" +
	" \x03(\v21.berth.accelerator.v1.ContainerEdits.SysctlsEntryR\asysctls\x12\x19\n" +
	"\bhost_ipc\x18\v \x01(\bR\ahostIpc\x12W\n" +
	"\vannotations\x18\f \x03(\v25.berth.accelerator.v1.ContainerEdits.AnnotationsEntryR\vannotations\x12\x1a\n" +
	"\bnetworks\x18\r \x03(\tR\bnetworks\x1a6\n" +
	"\bEnvEntry\x12\x10\n" +
	"\x03key\x18\x01 \x01(\tR\x03key\x12\x14\n" +
	"\x05value\x18\x02 \x01(\tR\x05value:\x028\x01\x1a:\n" +
	"\fSysctlsEntry\x12\x10\n" +
	"\x03key\x18\x01 \x01(\tR\x03key\x12\x14\n" +
	"\x05value\x18\x02 \x01(\tR\x05value:\x028\x01\x1a>\n" +
	"\x10AnnotationsEntry\x12\x10\n" +
	"\x03key\x18\x01 \x01(\tR\x03key\x12\x14\n" +
	"\x05value\x18\x02 \x01(\tR\x05value:\x028\x01J\x04\b\x0e\x10\x0fJ\x04\b\x0f\x10\x10J\x05\bd\x10\xc8\x01R\x05hooksR\tcdi_names\"\x97\x02\n" +
	"\n" +
	"DeviceNode\x12\x12\n" +
	"\x04path\x18\x01 \x01(\tR\x04path\x12\x1b\n" +
	"\thost_path\x18\x02 \x01(\tR\bhostPath\x129\n" +
	"\x04type\x18\x03 \x01(\x0e2%.berth.accelerator.v1.DeviceNode.TypeR\x04type\x12\x14\n" +
	"\x05major\x18\x04 \x01(\rR\x05major\x12\x14\n" +
	"\x05minor\x18\x05 \x01(\rR\x05minor\x12 \n" +
	"\vpermissions\x18\x06 \x01(\tR\vpermissions\x12\x1a\n" +
	"\boptional\x18\a \x01(\bR\boptional\",\n" +
	"\x04Type\x12\x0f\n" +
	"\vUNSPECIFIED\x10\x00\x12\b\n" +
	"\x04CHAR\x10\x01\x12\t\n" +
	"\x05BLOCK\x10\x02J\x05\bd\x10\xc8\x01\"\x94\x01\n" +
	"\x05Mount\x12\x16\n" +
	"\x06source\x18\x01 \x01(\tR\x06source\x12\x16\n" +
	"\x06target\x18\x02 \x01(\tR\x06target\x12\x1a\n" +
	"\bwritable\x18\x03 \x01(\bR\bwritable\x12\x1c\n" +
	"\trecursive\x18\x04 \x01(\bR\trecursive\x12\x1a\n" +
	"\boptional\x18\x05 \x01(\bR\boptionalJ\x05\bd\x10\xc8\x01\"D\n" +
	"\x06Rlimit\x12\x12\n" +
	"\x04name\x18\x01 \x01(\tR\x04name\x12\x12\n" +
	"\x04soft\x18\x02 \x01(\x04R\x04soft\x12\x12\n" +
	"\x04hard\x18\x03 \x01(\x04R\x04hard\"M\n" +
	"\x10UnprepareRequest\x12#\n" +
	"\rallocation_id\x18\x01 \x01(\tR\fallocationId\x12\x14\n" +
	"\x05state\x18\x02 \x01(\fR\x05state\"\x13\n" +
	"\x11UnprepareResponse\"J\n" +
	"\x0eRestoreRequest\x128\n" +
	"\x04live\x18\x01 \x03(\v2$.berth.accelerator.v1.LiveAllocationR\x04live\"\x96\x01\n" +
	"\x0eLiveAllocation\x12#\n" +
	"\rallocation_id\x18\x01 \x01(\tR\fallocationId\x12B\n" +
	"\vallocations\x18\x02 \x03(\v2 .berth.accelerator.v1.AllocationR\vallocations\x12\x14\n" +
	"\x05state\x18\x03 \x01(\fR\x05stateJ\x05\bd\x10\xc8\x01\"x\n" +
	"\x0fRestoreResponse\x12@\n" +
	"\bproblems\x18\x01 \x03(\v2$.berth.accelerator.v1.RestoreProblemR\bproblems\x12#\n" +
	"\rleaks_removed\x18\x02 \x03(\tR\fleaksRemoved\"s\n" +
	"\x0eRestoreProblem\x12#\n" +
	"\rallocation_id\x18\x01 \x01(\tR\fallocationId\x12\x1b\n" +
	"\tdevice_id\x18\x02 \x01(\tR\bdeviceId\x12\x18\n" +
	"\amessage\x18\x03 \x01(\tR\amessageJ\x05\bd\x10\xc8\x01\":\n" +
	"\x17WatchNodeMetricsRequest\x12\x1f\n" +
	"\vinterval_ms\x18\x01 \x01(\rR\n" +
	"intervalMs\"]\n" +
	"\n" +
	"NodeSample\x12\x17\n" +
	"\aunix_ms\x18\x01 \x01(\x03R\x06unixMs\x126\n" +
	"\ametrics\x18\x02 \x03(\v2\x1c.berth.accelerator.v1.MetricR\ametrics\"\xb1\x03\n" +
	"\x06Metric\x12\x12\n" +
	"\x04name\x18\x01 \x01(\tR\x04name\x12\x1b\n" +
	"\tdevice_id\x18\x02 \x01(\tR\bdeviceId\x12\x14\n" +
	"\x05value\x18\x03 \x01(\x01R\x05value\x12\x1f\n" +
	"\bcapacity\x18\x04 \x01(\x01H\x00R\bcapacity\x88\x01\x01\x12\x12\n" +
	"\x04unit\x18\x05 \x01(\tR\x04unit\x125\n" +
	"\x04kind\x18\x06 \x01(\x0e2!.berth.accelerator.v1.Metric.KindR\x04kind\x12>\n" +
	"\aquality\x18\a \x01(\x0e2$.berth.accelerator.v1.Metric.QualityR\aquality\"J\n" +
	"\x04Kind\x12\x0f\n" +
	"\vUNSPECIFIED\x10\x00\x12\t\n" +
	"\x05GAUGE\x10\x01\x12\v\n" +
	"\aCOUNTER\x10\x02\x12\b\n" +
	"\x04RATE\x10\x03\x12\x0f\n" +
	"\vUTILIZATION\x10\x04\"T\n" +
	"\aQuality\x12\v\n" +
	"\aUNKNOWN\x10\x00\x12\f\n" +
	"\bMEASURED\x10\x01\x12\x0e\n" +
	"\n" +
	"ATTRIBUTED\x10\x02\x12\r\n" +
	"\tESTIMATED\x10\x03\x12\x0f\n" +
	"\vUNAVAILABLE\x10\x04B\v\n" +
	"\t_capacityJ\x05\bd\x10\xc8\x01\"\x8d\x01\n" +
	"\vWorkloadSet\x12\x1f\n" +
	"\vinterval_ms\x18\x01 \x01(\rR\n" +
	"intervalMs\x12<\n" +
	"\tworkloads\x18\x02 \x03(\v2\x1e.berth.accelerator.v1.WorkloadR\tworkloads\x12\x1f\n" +
	"\vper_process\x18\x03 \x01(\bR\n" +
	"perProcess\"\xdb\x01\n" +
	"\bWorkload\x12#\n" +
	"\rallocation_id\x18\x01 \x01(\tR\fallocationId\x12B\n" +
	"\vallocations\x18\x02 \x03(\v2 .berth.accelerator.v1.AllocationR\vallocations\x12!\n" +
	"\fcontainer_id\x18\x03 \x01(\tR\vcontainerId\x12\x1f\n" +
	"\vcgroup_path\x18\x04 \x01(\tR\n" +
	"cgroupPath\x12\x1b\n" +
	"\thost_pids\x18\x05 \x03(\x05R\bhostPidsJ\x05\bd\x10\xc8\x01\"n\n" +
	"\x0eWorkloadSample\x12\x17\n" +
	"\aunix_ms\x18\x01 \x01(\x03R\x06unixMs\x12C\n" +
	"\tworkloads\x18\x02 \x03(\v2%.berth.accelerator.v1.WorkloadMetricsR\tworkloads\"\xb9\x01\n" +
	"\x0fWorkloadMetrics\x12#\n" +
	"\rallocation_id\x18\x01 \x01(\tR\fallocationId\x126\n" +
	"\ametrics\x18\x02 \x03(\v2\x1c.berth.accelerator.v1.MetricR\ametrics\x12B\n" +
	"\tprocesses\x18\x03 \x03(\v2$.berth.accelerator.v1.ProcessMetricsR\tprocessesJ\x05\bd\x10\xc8\x01\"c\n" +
	"\x0eProcessMetrics\x12\x19\n" +
	"\bhost_pid\x18\x01 \x01(\x05R\ahostPid\x126\n" +
	"\ametrics\x18\x02 \x03(\v2\x1c.berth.accelerator.v1.MetricR\ametrics\"\x14\n" +
	"\x12WatchHealthRequest\"\xdc\x01\n" +
	"\vHealthEvent\x12\x17\n" +
	"\aunix_ms\x18\x01 \x01(\x03R\x06unixMs\x12\x1b\n" +
	"\tdevice_id\x18\x02 \x01(\tR\bdeviceId\x124\n" +
	"\x06health\x18\x03 \x01(\x0e2\x1c.berth.accelerator.v1.HealthR\x06health\x12\x12\n" +
	"\x04code\x18\x04 \x01(\tR\x04code\x12\x18\n" +
	"\amessage\x18\x05 \x01(\tR\amessage\x12,\n" +
	"\x12fatal_to_workloads\x18\x06 \x01(\bR\x10fatalToWorkloadsJ\x05\bd\x10\xc8\x01*\xf4\x01\n" +
	"\n" +
	"Capability\x12\x1a\n" +
	"\x16CAPABILITY_UNSPECIFIED\x10\x00\x12\x18\n" +
	"\x14CAPABILITY_FRACTIONS\x10\x02\x12\x19\n" +
	"\x15CAPABILITY_PARTITIONS\x10\x03\x12\x1f\n" +
	"\x1bCAPABILITY_WORKLOAD_METRICS\x10\x04\x12\x1e\n" +
	"\x1aCAPABILITY_PROCESS_METRICS\x10\x05\x12\x15\n" +
	"\x11CAPABILITY_HEALTH\x10\x06\x12\x1b\n" +
	"\x17CAPABILITY_SIDE_EFFECTS\x10\a\x12\x1a\n" +
	"\x16CAPABILITY_RECONFIGURE\x10\b\"\x04\b\x01\x10\x01*l\n" +
	"\x06Health\x12\x12\n" +
	"\x0eHEALTH_UNKNOWN\x10\x00\x12\x12\n" +
	"\x0eHEALTH_HEALTHY\x10\x01\x12\x13\n" +
	"\x0fHEALTH_DEGRADED\x10\x02\x12\x14\n" +
	"\x10HEALTH_UNHEALTHY\x10\x03\x12\x0f\n" +
	"\vHEALTH_LOST\x10\x042\xbf\a\n" +
	"\vAccelerator\x12Y\n" +
	"\bDescribe\x12%.berth.accelerator.v1.DescribeRequest\x1a&.berth.accelerator.v1.DescribeResponse\x12\\\n" +
	"\tConfigure\x12&.berth.accelerator.v1.ConfigureRequest\x1a'.berth.accelerator.v1.ConfigureResponse\x12\\\n" +
	"\tPreflight\x12&.berth.accelerator.v1.PreflightRequest\x1a'.berth.accelerator.v1.PreflightResponse\x12a\n" +
	"\fWatchDevices\x12).berth.accelerator.v1.WatchDevicesRequest\x1a$.berth.accelerator.v1.DeviceSnapshot0\x01\x12V\n" +
	"\aPrepare\x12$.berth.accelerator.v1.PrepareRequest\x1a%.berth.accelerator.v1.PrepareResponse\x12\\\n" +
	"\tUnprepare\x12&.berth.accelerator.v1.UnprepareRequest\x1a'.berth.accelerator.v1.UnprepareResponse\x12V\n" +
	"\aRestore\x12$.berth.accelerator.v1.RestoreRequest\x1a%.berth.accelerator.v1.RestoreResponse\x12e\n" +
	"\x10WatchNodeMetrics\x12-.berth.accelerator.v1.WatchNodeMetricsRequest\x1a .berth.accelerator.v1.NodeSample0\x01\x12c\n" +
	"\x14WatchWorkloadMetrics\x12!.berth.accelerator.v1.WorkloadSet\x1a$.berth.accelerator.v1.WorkloadSample(\x010\x01\x12\\\n" +
	"\vWatchHealth\x12(.berth.accelerator.v1.WatchHealthRequest\x1a!.berth.accelerator.v1.HealthEvent0\x01B<Z:github.com/berthhq/berth/plugins/accelerator/acceleratorpbb\x06proto3"

var (
	file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescOnce sync.Once
	file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescData []byte
)

func file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescGZIP() []byte {
	file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescOnce.Do(func() {
		file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescData = protoimpl.X.CompressGZIP(unsafe.Slice(unsafe.StringData(file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDesc), len(file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDesc)))
	})
	return file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDescData
}

var file_plugins_accelerator_acceleratorpb_accelerator_proto_enumTypes = make([]protoimpl.EnumInfo, 8)
var file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes = make([]protoimpl.MessageInfo, 51)
var file_plugins_accelerator_acceleratorpb_accelerator_proto_goTypes = []any{
	(Capability)(0),                 // 0: berth.accelerator.v1.Capability
	(Health)(0),                     // 1: berth.accelerator.v1.Health
	(SlotType_Kind)(0),              // 2: berth.accelerator.v1.SlotType.Kind
	(Look_State)(0),                 // 3: berth.accelerator.v1.Look.State
	(Link_Type)(0),                  // 4: berth.accelerator.v1.Link.Type
	(DeviceNode_Type)(0),            // 5: berth.accelerator.v1.DeviceNode.Type
	(Metric_Kind)(0),                // 6: berth.accelerator.v1.Metric.Kind
	(Metric_Quality)(0),             // 7: berth.accelerator.v1.Metric.Quality
	(*DescribeRequest)(nil),         // 8: berth.accelerator.v1.DescribeRequest
	(*DescribeResponse)(nil),        // 9: berth.accelerator.v1.DescribeResponse
	(*ConfigureRequest)(nil),        // 10: berth.accelerator.v1.ConfigureRequest
	(*ConfigureResponse)(nil),       // 11: berth.accelerator.v1.ConfigureResponse
	(*Roots)(nil),                   // 12: berth.accelerator.v1.Roots
	(*PreflightRequest)(nil),        // 13: berth.accelerator.v1.PreflightRequest
	(*PreflightResponse)(nil),       // 14: berth.accelerator.v1.PreflightResponse
	(*Check)(nil),                   // 15: berth.accelerator.v1.Check
	(*SlotType)(nil),                // 16: berth.accelerator.v1.SlotType
	(*WatchDevicesRequest)(nil),     // 17: berth.accelerator.v1.WatchDevicesRequest
	(*DeviceSnapshot)(nil),          // 18: berth.accelerator.v1.DeviceSnapshot
	(*Look)(nil),                    // 19: berth.accelerator.v1.Look
	(*Device)(nil),                  // 20: berth.accelerator.v1.Device
	(*CounterSet)(nil),              // 21: berth.accelerator.v1.CounterSet
	(*CounterUse)(nil),              // 22: berth.accelerator.v1.CounterUse
	(*Link)(nil),                    // 23: berth.accelerator.v1.Link
	(*Allocation)(nil),              // 24: berth.accelerator.v1.Allocation
	(*PrepareRequest)(nil),          // 25: berth.accelerator.v1.PrepareRequest
	(*PrepareResponse)(nil),         // 26: berth.accelerator.v1.PrepareResponse
	(*AttachedDevice)(nil),          // 27: berth.accelerator.v1.AttachedDevice
	(*ContainerEdits)(nil),          // 28: berth.accelerator.v1.ContainerEdits
	(*DeviceNode)(nil),              // 29: berth.accelerator.v1.DeviceNode
	(*Mount)(nil),                   // 30: berth.accelerator.v1.Mount
	(*Rlimit)(nil),                  // 31: berth.accelerator.v1.Rlimit
	(*UnprepareRequest)(nil),        // 32: berth.accelerator.v1.UnprepareRequest
	(*UnprepareResponse)(nil),       // 33: berth.accelerator.v1.UnprepareResponse
	(*RestoreRequest)(nil),          // 34: berth.accelerator.v1.RestoreRequest
	(*LiveAllocation)(nil),          // 35: berth.accelerator.v1.LiveAllocation
	(*RestoreResponse)(nil),         // 36: berth.accelerator.v1.RestoreResponse
	(*RestoreProblem)(nil),          // 37: berth.accelerator.v1.RestoreProblem
	(*WatchNodeMetricsRequest)(nil), // 38: berth.accelerator.v1.WatchNodeMetricsRequest
	(*NodeSample)(nil),              // 39: berth.accelerator.v1.NodeSample
	(*Metric)(nil),                  // 40: berth.accelerator.v1.Metric
	(*WorkloadSet)(nil),             // 41: berth.accelerator.v1.WorkloadSet
	(*Workload)(nil),                // 42: berth.accelerator.v1.Workload
	(*WorkloadSample)(nil),          // 43: berth.accelerator.v1.WorkloadSample
	(*WorkloadMetrics)(nil),         // 44: berth.accelerator.v1.WorkloadMetrics
	(*ProcessMetrics)(nil),          // 45: berth.accelerator.v1.ProcessMetrics
	(*WatchHealthRequest)(nil),      // 46: berth.accelerator.v1.WatchHealthRequest
	(*HealthEvent)(nil),             // 47: berth.accelerator.v1.HealthEvent
	nil,                             // 48: berth.accelerator.v1.PreflightResponse.DriverInfoEntry
	nil,                             // 49: berth.accelerator.v1.DeviceSnapshot.DriverInfoEntry
	nil,                             // 50: berth.accelerator.v1.Device.AttributesEntry
	nil,                             // 51: berth.accelerator.v1.Device.CapacityEntry
	nil,                             // 52: berth.accelerator.v1.CounterSet.CountersEntry
	nil,                             // 53: berth.accelerator.v1.CounterUse.AmountsEntry
	nil,                             // 54: berth.accelerator.v1.PrepareRequest.OptionsEntry
	nil,                             // 55: berth.accelerator.v1.PrepareResponse.ResourceDataEntry
	nil,                             // 56: berth.accelerator.v1.ContainerEdits.EnvEntry
	nil,                             // 57: berth.accelerator.v1.ContainerEdits.SysctlsEntry
	nil,                             // 58: berth.accelerator.v1.ContainerEdits.AnnotationsEntry
}
var file_plugins_accelerator_acceleratorpb_accelerator_proto_depIdxs = []int32{
	0,  // 0: berth.accelerator.v1.DescribeResponse.capabilities:type_name -> berth.accelerator.v1.Capability
	16, // 1: berth.accelerator.v1.DescribeResponse.slots:type_name -> berth.accelerator.v1.SlotType
	12, // 2: berth.accelerator.v1.ConfigureRequest.roots:type_name -> berth.accelerator.v1.Roots
	15, // 3: berth.accelerator.v1.PreflightResponse.checks:type_name -> berth.accelerator.v1.Check
	48, // 4: berth.accelerator.v1.PreflightResponse.driver_info:type_name -> berth.accelerator.v1.PreflightResponse.DriverInfoEntry
	2,  // 5: berth.accelerator.v1.SlotType.kind:type_name -> berth.accelerator.v1.SlotType.Kind
	20, // 6: berth.accelerator.v1.DeviceSnapshot.devices:type_name -> berth.accelerator.v1.Device
	21, // 7: berth.accelerator.v1.DeviceSnapshot.counters:type_name -> berth.accelerator.v1.CounterSet
	23, // 8: berth.accelerator.v1.DeviceSnapshot.links:type_name -> berth.accelerator.v1.Link
	49, // 9: berth.accelerator.v1.DeviceSnapshot.driver_info:type_name -> berth.accelerator.v1.DeviceSnapshot.DriverInfoEntry
	16, // 10: berth.accelerator.v1.DeviceSnapshot.slots:type_name -> berth.accelerator.v1.SlotType
	19, // 11: berth.accelerator.v1.DeviceSnapshot.look:type_name -> berth.accelerator.v1.Look
	3,  // 12: berth.accelerator.v1.Look.state:type_name -> berth.accelerator.v1.Look.State
	50, // 13: berth.accelerator.v1.Device.attributes:type_name -> berth.accelerator.v1.Device.AttributesEntry
	51, // 14: berth.accelerator.v1.Device.capacity:type_name -> berth.accelerator.v1.Device.CapacityEntry
	22, // 15: berth.accelerator.v1.Device.consumes:type_name -> berth.accelerator.v1.CounterUse
	1,  // 16: berth.accelerator.v1.Device.health:type_name -> berth.accelerator.v1.Health
	52, // 17: berth.accelerator.v1.CounterSet.counters:type_name -> berth.accelerator.v1.CounterSet.CountersEntry
	53, // 18: berth.accelerator.v1.CounterUse.amounts:type_name -> berth.accelerator.v1.CounterUse.AmountsEntry
	4,  // 19: berth.accelerator.v1.Link.type:type_name -> berth.accelerator.v1.Link.Type
	24, // 20: berth.accelerator.v1.PrepareRequest.allocations:type_name -> berth.accelerator.v1.Allocation
	54, // 21: berth.accelerator.v1.PrepareRequest.options:type_name -> berth.accelerator.v1.PrepareRequest.OptionsEntry
	28, // 22: berth.accelerator.v1.PrepareResponse.edits:type_name -> berth.accelerator.v1.ContainerEdits
	27, // 23: berth.accelerator.v1.PrepareResponse.attached:type_name -> berth.accelerator.v1.AttachedDevice
	55, // 24: berth.accelerator.v1.PrepareResponse.resource_data:type_name -> berth.accelerator.v1.PrepareResponse.ResourceDataEntry
	29, // 25: berth.accelerator.v1.ContainerEdits.device_nodes:type_name -> berth.accelerator.v1.DeviceNode
	30, // 26: berth.accelerator.v1.ContainerEdits.mounts:type_name -> berth.accelerator.v1.Mount
	56, // 27: berth.accelerator.v1.ContainerEdits.env:type_name -> berth.accelerator.v1.ContainerEdits.EnvEntry
	31, // 28: berth.accelerator.v1.ContainerEdits.rlimits:type_name -> berth.accelerator.v1.Rlimit
	57, // 29: berth.accelerator.v1.ContainerEdits.sysctls:type_name -> berth.accelerator.v1.ContainerEdits.SysctlsEntry
	58, // 30: berth.accelerator.v1.ContainerEdits.annotations:type_name -> berth.accelerator.v1.ContainerEdits.AnnotationsEntry
	5,  // 31: berth.accelerator.v1.DeviceNode.type:type_name -> berth.accelerator.v1.DeviceNode.Type
	35, // 32: berth.accelerator.v1.RestoreRequest.live:type_name -> berth.accelerator.v1.LiveAllocation
	24, // 33: berth.accelerator.v1.LiveAllocation.allocations:type_name -> berth.accelerator.v1.Allocation
	37, // 34: berth.accelerator.v1.RestoreResponse.problems:type_name -> berth.accelerator.v1.RestoreProblem
	40, // 35: berth.accelerator.v1.NodeSample.metrics:type_name -> berth.accelerator.v1.Metric
	6,  // 36: berth.accelerator.v1.Metric.kind:type_name -> berth.accelerator.v1.Metric.Kind
	7,  // 37: berth.accelerator.v1.Metric.quality:type_name -> berth.accelerator.v1.Metric.Quality
	42, // 38: berth.accelerator.v1.WorkloadSet.workloads:type_name -> berth.accelerator.v1.Workload
	24, // 39: berth.accelerator.v1.Workload.allocations:type_name -> berth.accelerator.v1.Allocation
	44, // 40: berth.accelerator.v1.WorkloadSample.workloads:type_name -> berth.accelerator.v1.WorkloadMetrics
	40, // 41: berth.accelerator.v1.WorkloadMetrics.metrics:type_name -> berth.accelerator.v1.Metric
	45, // 42: berth.accelerator.v1.WorkloadMetrics.processes:type_name -> berth.accelerator.v1.ProcessMetrics
	40, // 43: berth.accelerator.v1.ProcessMetrics.metrics:type_name -> berth.accelerator.v1.Metric
	1,  // 44: berth.accelerator.v1.HealthEvent.health:type_name -> berth.accelerator.v1.Health
	8,  // 45: berth.accelerator.v1.Accelerator.Describe:input_type -> berth.accelerator.v1.DescribeRequest
	10, // 46: berth.accelerator.v1.Accelerator.Configure:input_type -> berth.accelerator.v1.ConfigureRequest
	13, // 47: berth.accelerator.v1.Accelerator.Preflight:input_type -> berth.accelerator.v1.PreflightRequest
	17, // 48: berth.accelerator.v1.Accelerator.WatchDevices:input_type -> berth.accelerator.v1.WatchDevicesRequest
	25, // 49: berth.accelerator.v1.Accelerator.Prepare:input_type -> berth.accelerator.v1.PrepareRequest
	32, // 50: berth.accelerator.v1.Accelerator.Unprepare:input_type -> berth.accelerator.v1.UnprepareRequest
	34, // 51: berth.accelerator.v1.Accelerator.Restore:input_type -> berth.accelerator.v1.RestoreRequest
	38, // 52: berth.accelerator.v1.Accelerator.WatchNodeMetrics:input_type -> berth.accelerator.v1.WatchNodeMetricsRequest
	41, // 53: berth.accelerator.v1.Accelerator.WatchWorkloadMetrics:input_type -> berth.accelerator.v1.WorkloadSet
	46, // 54: berth.accelerator.v1.Accelerator.WatchHealth:input_type -> berth.accelerator.v1.WatchHealthRequest
	9,  // 55: berth.accelerator.v1.Accelerator.Describe:output_type -> berth.accelerator.v1.DescribeResponse
	11, // 56: berth.accelerator.v1.Accelerator.Configure:output_type -> berth.accelerator.v1.ConfigureResponse
	14, // 57: berth.accelerator.v1.Accelerator.Preflight:output_type -> berth.accelerator.v1.PreflightResponse
	18, // 58: berth.accelerator.v1.Accelerator.WatchDevices:output_type -> berth.accelerator.v1.DeviceSnapshot
	26, // 59: berth.accelerator.v1.Accelerator.Prepare:output_type -> berth.accelerator.v1.PrepareResponse
	33, // 60: berth.accelerator.v1.Accelerator.Unprepare:output_type -> berth.accelerator.v1.UnprepareResponse
	36, // 61: berth.accelerator.v1.Accelerator.Restore:output_type -> berth.accelerator.v1.RestoreResponse
	39, // 62: berth.accelerator.v1.Accelerator.WatchNodeMetrics:output_type -> berth.accelerator.v1.NodeSample
	43, // 63: berth.accelerator.v1.Accelerator.WatchWorkloadMetrics:output_type -> berth.accelerator.v1.WorkloadSample
	47, // 64: berth.accelerator.v1.Accelerator.WatchHealth:output_type -> berth.accelerator.v1.HealthEvent
	55, // [55:65] is the sub-list for method output_type
	45, // [45:55] is the sub-list for method input_type
	45, // [45:45] is the sub-list for extension type_name
	45, // [45:45] is the sub-list for extension extendee
	0,  // [0:45] is the sub-list for field type_name
}

func init() { file_plugins_accelerator_acceleratorpb_accelerator_proto_init() }
func file_plugins_accelerator_acceleratorpb_accelerator_proto_init() {
	if File_plugins_accelerator_acceleratorpb_accelerator_proto != nil {
		return
	}
	file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[12].OneofWrappers = []any{}
	file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes[32].OneofWrappers = []any{}
	type x struct{}
	out := protoimpl.TypeBuilder{
		File: protoimpl.DescBuilder{
			GoPackagePath: reflect.TypeOf(x{}).PkgPath(),
			RawDescriptor: unsafe.Slice(unsafe.StringData(file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDesc), len(file_plugins_accelerator_acceleratorpb_accelerator_proto_rawDesc)),
			NumEnums:      8,
			NumMessages:   51,
			NumExtensions: 0,
			NumServices:   1,
		},
		GoTypes:           file_plugins_accelerator_acceleratorpb_accelerator_proto_goTypes,
		DependencyIndexes: file_plugins_accelerator_acceleratorpb_accelerator_proto_depIdxs,
		EnumInfos:         file_plugins_accelerator_acceleratorpb_accelerator_proto_enumTypes,
		MessageInfos:      file_plugins_accelerator_acceleratorpb_accelerator_proto_msgTypes,
	}.Build()
	File_plugins_accelerator_acceleratorpb_accelerator_proto = out.File
	file_plugins_accelerator_acceleratorpb_accelerator_proto_goTypes = nil
	file_plugins_accelerator_acceleratorpb_accelerator_proto_depIdxs = nil
}
