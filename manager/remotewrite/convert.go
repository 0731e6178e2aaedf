package remotewrite

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/prometheus/prometheus/prompb"

	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/series"
)

// mark begins the name of every metric.
const mark = "berth_measured_"

// maxLabel limits the value of a label, in bytes.
const maxLabel = 200

// batch is what one request contains.
type batch struct {
	series  []prompb.TimeSeries
	samples int
}

// sendChunks sends chunks in their order, several in one request. Chunks that are older than the buffer are skipped.
func (s *Service) sendChunks(ctx context.Context, list []chunk) error {
	var parts []batch // of the next request, by chunk
	var newest int64
	total := 0
	flush := func() error {
		if len(parts) == 0 {
			return nil
		}
		if err := s.deliver(ctx, parts); err != nil {
			return err
		}
		s.meter.newest.Set(float64(newest))
		parts, total = nil, 0
		return nil
	}
	for _, c := range list {
		if clock.Now().Sub(c.start) > s.Buffer {
			s.meter.dropped.WithLabelValues("old").Add(float64(s.count(c)))
			continue
		}
		b, err := s.convert(ctx, c)
		if err != nil {
			return err
		}
		if total > 0 && total+b.samples > maxSamples {
			if err := flush(); err != nil {
				return err
			}
		}
		parts, total, newest = append(parts, b), total+b.samples, max(newest, c.start.Unix())
	}
	return flush()
}

// count returns the samples of a chunk.
func (s *Service) count(c chunk) (n int) {
	lines := series.Lines{}
	if err := s.codec.Decode(c.start, c.data, lines, every); err != nil {
		return 0
	}
	for _, of := range lines {
		for _, l := range of {
			n += len(l.Points)
		}
	}
	return n
}

func every(uuid.UUID, series.Key) bool { return true }

// convert returns the samples of a chunk with their names and labels. A chunk that cannot be read is skipped: it would stop all
// later ones.
func (s *Service) convert(ctx context.Context, c chunk) (b batch, err error) {
	lines := series.Lines{}
	if err := s.codec.Decode(c.start, c.data, lines, every); err != nil {
		s.Logger.WarnContext(ctx, "skip measurements that cannot be read", "source", c.source, "start", c.start, "error", err)
		return b, nil
	}
	known, err := s.find(ctx, c.source, slices.Collect(maps.Keys(lines)))
	if err != nil {
		return b, err
	}
	for id, of := range lines {
		about, ok := known[id]
		if !ok {
			for _, l := range of {
				s.meter.dropped.WithLabelValues("unknown").Add(float64(len(l.Points)))
			}
			continue
		}
		for _, l := range of {
			b.add(about, l)
		}
		b.addSlots(about, of)
	}
	return b, nil
}

// add adds the samples of one measure, and its capacity at the last of them.
func (b *batch) add(about subject, l *series.Line) {
	if len(l.Points) == 0 {
		return
	}
	kind, labels := about.kind, maps.Clone(about.labels)
	if l.Device != "" {
		labels["device"] = l.Device
		if kind == machine {
			kind = device
		}
	}
	name := mark + kind + "_" + metricName(l.Name)
	values := make([]prompb.Sample, len(l.Points))
	for i, p := range l.Points {
		values[i] = prompb.Sample{Value: p.Mean(), Timestamp: p.At.UnixMilli()}
	}
	b.put(name, labels, values)
	if l.Capacity > 0 {
		b.put(name+"_capacity", labels, []prompb.Sample{{Value: l.Capacity, Timestamp: values[len(values)-1].Timestamp}})
	}
}

// addSlots adds what a container has allocated, at the time of its last sample.
func (b *batch) addSlots(about subject, of map[series.Key]*series.Line) {
	var last int64
	for _, l := range of {
		if n := len(l.Points); n > 0 {
			last = max(last, l.Points[n-1].At.UnixMilli())
		}
	}
	for slot, text := range about.slots.Strings() {
		value, err := strconv.ParseFloat(text, 64)
		if err != nil || last == 0 {
			continue
		}
		labels := maps.Clone(about.labels)
		labels["slot"] = slot
		b.put(mark+container+"_allocated", labels, []prompb.Sample{{Value: value, Timestamp: last}})
	}
}

// put adds one series, with its labels in the order of their names, as the protocol requires.
func (b *batch) put(name string, labels map[string]string, values []prompb.Sample) {
	labels = maps.Clone(labels)
	labels["__name__"] = name
	list := make([]prompb.Label, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if v := labels[key]; v != "" { // an empty value means that there is no label
			list = append(list, prompb.Label{Name: key, Value: strings.ToValidUTF8(v[:min(len(v), maxLabel)], "")})
		}
	}
	b.series = append(b.series, prompb.TimeSeries{Labels: list, Samples: values})
	b.samples += len(values)
}

// metricName returns a name with the characters that names of metrics can have.
func metricName(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, text)
}
