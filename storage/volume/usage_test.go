package volume

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/plugins/volume/volumepb"
)

// The error names the limit that is exceeded, and no other limit.
func TestOver(t *testing.T) {
	n := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		name     string
		scope    *volumepb.Scope
		size     int64
		promised int64
		limit    *int64
	}{
		{"unknown usage", nil, 1 << 40, 0, nil},
		{"no limit", &volumepb.Scope{UsedBytes: n(5), UsedInodes: n(5)}, 1 << 40, 0, nil},
		{"room", &volumepb.Scope{UsedBytes: n(5), Limit: &volumepb.Limit{Bytes: n(10)}}, 5, 0, nil},
		{"no room", &volumepb.Scope{UsedBytes: n(5), Limit: &volumepb.Limit{Bytes: n(10)}}, 6, 0, n(10)},
		{"promised", &volumepb.Scope{UsedBytes: n(5), Limit: &volumepb.Limit{Bytes: n(10)}}, 5, 1, n(10)},
		{"no byte", &volumepb.Scope{Limit: &volumepb.Limit{Bytes: n(0)}}, 1, 0, n(0)},
		{"one more file", &volumepb.Scope{UsedInodes: n(9), Limit: &volumepb.Limit{Inodes: n(10)}}, 1 << 40, 0, nil},
		{"no more files", &volumepb.Scope{UsedInodes: n(10), Limit: &volumepb.Limit{Inodes: n(10), Bytes: n(1 << 40)}}, 0, 0, n(10)},
		{"no file", &volumepb.Scope{Limit: &volumepb.Limit{Inodes: n(0)}}, 0, 0, n(0)},
	} {
		err := Over(c.scope, c.size, c.promised)
		if c.limit == nil {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		p, _ := problem.From(err)
		if !errdefs.IsResourceExhausted(err) || p.Limit != strconv.FormatInt(*c.limit, 10) || p.Status != http.StatusInsufficientStorage {
			t.Errorf("%s: %v, %+v", c.name, err, p)
		}
	}
}
