package driver

import pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"

// ByID returns the devices of a snapshot by id.
func ByID(s *pb.DeviceSnapshot) map[string]*pb.Device {
	all := map[string]*pb.Device{}
	for _, d := range s.GetDevices() {
		all[d.GetId()] = d
	}
	return all
}

// Each measures the devices of a snapshot one by one.
func Each(s *pb.DeviceSnapshot, measure func(*pb.Device) []*pb.Metric) []*pb.Metric {
	var all []*pb.Metric
	for _, d := range s.GetDevices() {
		all = append(all, measure(d)...)
	}
	return all
}

// Whole measures workloads with exclusive devices: the metrics of a device are attributed to its
// workload.
func Whole(s *pb.DeviceSnapshot, set *pb.WorkloadSet, measure func(*pb.Device) []*pb.Metric) []*pb.WorkloadMetrics {
	devices := ByID(s)
	var out []*pb.WorkloadMetrics
	for _, w := range set.GetWorkloads() {
		one := &pb.WorkloadMetrics{AllocationId: w.GetAllocationId()}
		for _, a := range w.GetAllocations() {
			d := devices[a.GetDeviceId()]
			if d == nil {
				continue
			}
			for _, metric := range measure(d) {
				one.Metrics = append(one.Metrics, Attributed(metric))
			}
		}
		out = append(out, one)
	}
	return out
}
