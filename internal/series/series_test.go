package series_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/series"
)

var start = time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC)

func all(uuid.UUID, series.Key) bool { return true }

// A chunk is read as it was written, samples and merged points alike.
func TestCodec(t *testing.T) {
	c, err := series.NewCodec()
	if err != nil {
		t.Fatal(err)
	}
	kernel, agent := uuid.New(), uuid.New()
	lines := series.Lines{}
	for i := range 12 {
		at := start.Add(time.Duration(i)*5*time.Second + 17*time.Millisecond)
		util := lines.Line(kernel, series.Key{Name: "cpu_util"})
		util.Append(series.Line{Unit: "percent", Capacity: 100, Quality: "measured", Points: []series.Point{series.Sample(at, math.Sqrt(float64(i)))}})
		lines.Line(agent, series.Key{Name: "cuda_util", Device: "GPU-1"}).Append(series.Line{Quality: "estimated", Points: []series.Point{series.Sample(at, 50)}})
	}
	lines[agent][series.Key{Name: "cuda_util", Device: "GPU-1"}].Coarsen(time.Minute)
	data, err := c.Encode(start, lines)
	if err != nil {
		t.Fatal(err)
	}
	got := series.Lines{}
	if err := c.Decode(start, data, got, all); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lines, got); diff != "" {
		t.Errorf("written and read (-written +read):\n%s", diff)
	}
	one := series.Lines{}
	err = c.Decode(start, data, one, func(id uuid.UUID, k series.Key) bool { return id == kernel })
	if err != nil || len(one) != 1 || len(one[kernel]) != 1 {
		t.Errorf("only one subject: %v, %v", one, err)
	}
	for i := range len(data) {
		broken := append([]byte{}, data...)
		broken[i] ^= 0xff
		_ = c.Decode(start, broken, series.Lines{}, all) // it must not panic
	}
	if err := c.Decode(start, data[:len(data)/2], series.Lines{}, all); err == nil {
		t.Error("half a chunk was decoded")
	}
}

// However samples are grouped on the way, the coarse points are the same: no sample is lost or counted twice.
func TestCoarsen(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		var direct, twice series.Line
		n := 1 + random.IntN(500)
		at, sum := start, 0.0
		for range n {
			at = at.Add(time.Duration(1+random.IntN(90_000)) * time.Millisecond)
			value := float64(random.IntN(1000)) // sums of whole numbers are exact
			sum += value
			direct.Points = append(direct.Points, series.Sample(at, value))
		}
		twice.Points = append(twice.Points, direct.Points...)
		direct.Coarsen(time.Hour)
		twice.Coarsen(time.Minute)
		twice.Coarsen(time.Hour)
		if diff := cmp.Diff(direct.Points, twice.Points); diff != "" {
			t.Fatalf("minutes first (-direct +minutes):\n%s", diff)
		}
		count := 0
		for _, p := range direct.Points {
			count += p.Count
			sum -= p.Sum
			if p.Min > p.Mean() || p.Mean() > p.Max {
				t.Fatalf("a mean outside: %+v", p)
			}
		}
		if count != n || sum != 0 {
			t.Fatalf("%d samples of %d, and %v more", count, n, sum)
		}
	}
}

func TestQualities(t *testing.T) {
	var l series.Line
	for _, q := range []string{"measured", "estimated", "measured"} {
		l.Append(series.Line{Quality: q})
	}
	if l.Quality != "estimated" {
		t.Errorf("quality %s", l.Quality)
	}
}
