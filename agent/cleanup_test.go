package agent

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/agent/runtime"
)

// shelf is a runtime whose images take 10 of 100 bytes each.
type shelf struct {
	runtime.Runtime
	images []runtime.Image
	busy   string // a container uses this image
	other  int64  // bytes that are not of images
}

func (s *shelf) Images(context.Context) ([]runtime.Image, error) { return slices.Clone(s.images), nil }

func (s *shelf) ImageDisk() (size, free int64, err error) {
	return 100, 100 - s.other - 10*int64(len(s.images)), nil
}

func (s *shelf) RemoveImage(_ context.Context, img runtime.Image) error {
	if img.Reference == s.busy {
		return fmt.Errorf("in use: %w", errdefs.ErrFailedPrecondition)
	}
	s.images = slices.DeleteFunc(s.images, func(i runtime.Image) bool { return i.Reference == img.Reference })
	return nil
}

func TestCleanup(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, tc := range map[string]struct {
		pins  []string
		known bool
		busy  string
		other int64
		want  []string // that are left
	}{
		"enough space":           {known: true, other: 20, want: []string{"day", "hours", "month", "new", "week"}},
		"least recently used":    {known: true, other: 40, want: []string{"day", "hours", "new"}},
		"pinned":                 {known: true, other: 40, pins: []string{"month"}, want: []string{"hours", "month", "new"}},
		"in use":                 {known: true, other: 40, busy: "week", want: []string{"hours", "new", "week"}},
		"grace time":             {known: true, other: 95, want: []string{"new"}},
		"pins are not known yet": {other: 40, want: []string{"day", "hours", "month", "new", "week"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &shelf{busy: tc.busy, other: tc.other, images: []runtime.Image{
				{Reference: "new", Used: now}, {Reference: "month", Used: now.AddDate(0, -1, 0)}, {Reference: "hours", Used: now.Add(-3 * time.Hour)},
				{Reference: "day", Used: now.AddDate(0, 0, -1)}, {Reference: "week", Used: now.AddDate(0, 0, -7)},
			}}
			reports := 0
			c := &cleaner{
				cfg: ImageCleanup{Above: 85, Below: 70, Grace: time.Hour}, runtime: s, remover: s, changed: func() { reports++ },
				meter: newMeter(prometheus.NewRegistry()), log: slog.New(slog.NewTextHandler(io.Discard, nil)),
			}
			if tc.known {
				c.pin(tc.pins)
			}
			if err := c.clean(t.Context()); err != nil {
				t.Fatal(err)
			}
			var left []string
			for _, i := range s.images {
				left = append(left, i.Reference)
			}
			slices.Sort(left)
			if !slices.Equal(left, tc.want) {
				t.Errorf("left: %v, want %v", left, tc.want)
			}
			if reports != 5-len(left) {
				t.Errorf("%d removals were reported, want %d", reports, 5-len(left))
			}
		})
	}
}
