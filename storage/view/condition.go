package view

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/storage/transfer"
	"github.com/berthhq/berth/storage/volume"
)

// condition returns the condition that If-Match and If-None-Match set for the file that a
// request would replace (RFC 9110, 13.1), or nil without these headers.
func condition(h http.Header) (transfer.Condition, error) {
	match, err := readTags(h, "If-Match")
	if err != nil {
		return nil, err
	}
	none, err := readTags(h, "If-None-Match")
	if err != nil || match == nil && none == nil {
		return nil, err
	}
	return func(there *volume.Entry) error {
		switch {
		case match != nil && !match.has(there, false):
			return problem.Changed("If-Match", "the file does not exist, or is not the one that the tag names")
		case none != nil && none.has(there, true):
			return problem.Changed("If-None-Match", "the file exists")
		}
		return nil
	}, nil
}

// tags are the entity tags of a header; any stands for "*".
type tags struct {
	any  bool
	list []string
}

// has reports whether a file matches one of the tags. Weak tags match only where weak is true,
// as the tags of WebDAV are strong.
func (t *tags) has(there *volume.Entry, weak bool) bool {
	if there == nil {
		return false
	}
	is := entityTag(there.Size, there.Modified)
	for _, tag := range t.list {
		if strong, found := strings.CutPrefix(tag, "W/"); strong == is && (weak || !found) {
			return true
		}
	}
	return t.any
}

func readTags(h http.Header, name string) (*tags, error) {
	values := h.Values(name)
	if len(values) == 0 {
		return nil, nil
	}
	text := strings.TrimSpace(strings.Join(values, ","))
	if text == "*" {
		return &tags{any: true}, nil
	}
	t := &tags{}
	for text != "" {
		rest, weak := strings.CutPrefix(text, "W/")
		end := -1
		if strings.HasPrefix(rest, `"`) {
			end = strings.IndexByte(rest[1:], '"') + 2
		}
		if end < 2 {
			return nil, fmt.Errorf("header %s: %q is no entity tag: %w", name, text, errdefs.ErrInvalidArgument)
		}
		tag := rest[:end]
		if weak {
			tag = "W/" + tag
		}
		t.list = append(t.list, tag)
		text = strings.TrimLeft(rest[end:], ", \t")
	}
	return t, nil
}

// entityTag returns a tag that changes when a file is replaced or written to.
func entityTag(size int64, modified time.Time) string {
	return fmt.Sprintf(`"%x-%x"`, size, modified.UnixNano())
}
