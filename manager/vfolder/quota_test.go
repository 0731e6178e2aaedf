package vfolder

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/storage/storagepb"
)

func amount(n int64) *int64 { return &n }

// A volume gets only limits that it can enforce. Others are refused by their names.
func TestLimitsOfAVolume(t *testing.T) {
	scope := &ent.QuotaScope{LimitInodes: amount(7)}
	for _, c := range []struct {
		name          string
		capabilities  []string
		bytes, inodes bool
		refuses       map[string]string // a part of the error, by field
	}{
		{"both", []string{"scope", bytesQuota, inodesQuota}, true, true, nil},
		{"bytes alone", []string{"scope", bytesQuota}, true, false, map[string]string{"limitInodes": "it can limit bytes"}},
		{"files alone", []string{"scope", inodesQuota}, false, true, map[string]string{"limitBytes": "it can limit files"}},
		{"neither", []string{"scope"}, false, false, map[string]string{"limitInodes": "it can limit nothing", "limitBytes": "it can limit nothing"}},
		{"not known yet", nil, true, true, map[string]string{"limitInodes": "not reported", "limitBytes": "not reported"}},
	} {
		vol := &ent.Volume{Name: "fast", Capabilities: c.capabilities}
		got := request(scope, vol, amount(5))
		if (got.LimitBytes != nil) != c.bytes || (got.LimitInodes != nil) != c.inodes {
			t.Errorf("%s: requests %v", c.name, got)
		}
		for _, l := range limitKinds {
			if err := l.check(vol, nil); err != nil {
				t.Errorf("%s: no limit of %s: %v", c.name, l.refusal, err)
			}
			err := l.check(vol, amount(0))
			said, _ := problem.From(err)
			if want := c.refuses[l.field]; (err == nil) != (want == "") || err != nil && (said.Field != l.field || !strings.Contains(said.Message, want)) {
				t.Errorf("%s: %s: %+v", c.name, l.field, said)
			}
		}
	}
}

// When a plugin rejects a limit, the error names the field of the API.
func TestLimitsThatAPluginRefuses(t *testing.T) {
	for text, field := range map[string]string{"limit.bytes: 0 is no limit to it": "limitBytes", "limit.inodes: too many": "limitInodes", "scope: odd": ""} {
		said, known := problem.From(refused(fmt.Errorf("limit quota scope: %s: %w", text, errdefs.ErrInvalidArgument)))
		if said.Field != field || said.Code != problem.CodeInvalidArgument || !known {
			t.Errorf("%s: %+v", text, said)
		}
	}
	gone := fmt.Errorf("limit.bytes: %w", errdefs.ErrUnavailable)
	if got := refused(gone); got != gone {
		t.Errorf("%v", got)
	}
}

// rounder is a proxy whose product counts in KiB.
type rounder struct {
	storagepb.StorageClient
	limit *int64
	used  *int64
	sets  int
}

func (r *rounder) GetScope(context.Context, *storagepb.ScopeRequest, ...grpc.CallOption) (*storagepb.Scope, error) {
	return &storagepb.Scope{LimitBytes: r.limit, UsedBytes: r.used, Enforcement: "hard"}, nil
}

func (r *rounder) SetScopeLimit(ctx context.Context, q *storagepb.ScopeRequest, _ ...grpc.CallOption) (*storagepb.Scope, error) {
	r.sets++
	r.limit = q.LimitBytes
	if r.limit != nil {
		r.limit = amount((*q.LimitBytes + 1023) / 1024 * 1024)
	}
	return r.GetScope(ctx, q)
}

// A limit that the product rounds is sent to it once, and again after someone changes it.
func TestLimitsThatAProductRounds(t *testing.T) {
	s, r := &Service{rounded: map[string]rounded{}}, &rounder{}
	for i, c := range []struct {
		want    *int64
		outside *int64 // a change of the limit that does not come from Berth
		sets    int
	}{
		{amount(1000), nil, 1}, {amount(1000), nil, 0}, {amount(1001), nil, 1}, {amount(1001), nil, 0},
		{amount(1001), amount(1 << 30), 1}, {amount(1001), nil, 0}, {nil, nil, 1}, {nil, nil, 0}, {amount(2048), nil, 1}, {amount(2048), nil, 0},
	} {
		if c.outside != nil {
			r.limit = c.outside
		}
		r.sets = 0
		if _, err := s.applyLimits(t.Context(), r, &storagepb.ScopeRequest{Volume: "fast", Scope: "s", LimitBytes: c.want}); err != nil {
			t.Fatal(err)
		}
		if r.sets != c.sets {
			t.Errorf("step %d: it was limited %d times, want %d", i, r.sets, c.sets)
		}
	}
}

func TestOwnLimitsThatAreReached(t *testing.T) {
	for _, c := range []struct {
		scope  ent.QuotaScope
		brings int64
		want   []string
	}{
		{ent.QuotaScope{UsedBytes: amount(5), UsedInodes: amount(5)}, 10, nil},
		{ent.QuotaScope{LimitBytes: amount(10), LimitInodes: amount(10)}, 100, nil}, // no usage is known
		{ent.QuotaScope{UsedBytes: amount(5), LimitBytes: amount(10)}, 5, nil},
		{ent.QuotaScope{UsedBytes: amount(5), LimitBytes: amount(10)}, 6, []string{"10"}},
		{ent.QuotaScope{UsedBytes: amount(0), LimitBytes: amount(0)}, 0, []string{"0"}},
		{ent.QuotaScope{UsedInodes: amount(9), LimitInodes: amount(10)}, 1000, nil}, // the directory of the folder counts as one
		{ent.QuotaScope{UsedInodes: amount(10), LimitInodes: amount(10), UsedBytes: amount(3), LimitBytes: amount(3)}, 0, []string{"3", "10"}},
	} {
		var got []string
		for _, f := range ownReached(&c.scope, c.brings) {
			got = append(got, f.most)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%v: %s", &c.scope, d)
		}
	}
}
