package image

import (
	"maps"
	"slices"
	"strings"

	"github.com/berthhq/berth/ent"
)

// ImageChange is the difference between two versions of an image.
type ImageChange struct {
	From, To      string // digests
	LayersKept    int
	BytesKept     int64
	LayersAdded   int
	BytesAdded    int64
	LayersRemoved int
	Labels        []*ValueChange
	Environment   []*ValueChange
}

// ValueChange is a label or a variable that differs; nil: it does not exist.
type ValueChange struct {
	Name          string
	Before, After *string
}

// Change compares two of the versions of an image, which are the newest first; nil: the one before
// the newest, and the newest. It returns nil if there is no such version, or if its layers are not
// known.
func Change(versions []*ent.ImageVersion, from, to *string) *ImageChange {
	find := func(digest *string, otherwise int) *ent.ImageVersion {
		for n, v := range versions {
			if digest == nil && n == otherwise || digest != nil && v.Digest == *digest {
				return v
			}
		}
		return nil
	}
	before, after := find(from, 1), find(to, 0)
	if before == nil || after == nil {
		return nil
	}
	return Compare(before, after)
}

// Compare returns the difference between two versions; nil if the layers of one are not known.
func Compare(from, to *ent.ImageVersion) *ImageChange {
	if len(from.Layers) == 0 || len(to.Layers) == 0 {
		return nil
	}
	c := &ImageChange{
		From: from.Digest, To: to.Digest, Labels: values(from.Labels, to.Labels),
		Environment: values(variables(from.Environment), variables(to.Environment)),
	}
	left := map[string]int{}
	for _, l := range from.Layers {
		left[l.Digest]++
	}
	for _, l := range to.Layers {
		if left[l.Digest] > 0 {
			left[l.Digest]--
			c.LayersKept++
			c.BytesKept += l.Size
			continue
		}
		c.LayersAdded++
		c.BytesAdded += l.Size
	}
	c.LayersRemoved = len(from.Layers) - c.LayersKept
	return c
}

func variables(list []string) map[string]string {
	m := map[string]string{}
	for _, e := range list {
		name, value, _ := strings.Cut(e, "=")
		m[name] = value
	}
	return m
}

// values lists what differs, by name.
func values(before, after map[string]string) []*ValueChange {
	out := []*ValueChange{}
	both := maps.Clone(before)
	if both == nil {
		both = map[string]string{}
	}
	maps.Copy(both, after)
	for _, name := range slices.Sorted(maps.Keys(both)) {
		b, had := before[name]
		a, has := after[name]
		if had && has && a == b {
			continue
		}
		one := &ValueChange{Name: name}
		if had {
			one.Before = &b
		}
		if has {
			one.After = &a
		}
		out = append(out, one)
	}
	return out
}
