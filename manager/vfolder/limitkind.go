package vfolder

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/storage/storagepb"
)

// Limits that a volume can enforce, as the storage contract names them.
const (
	bytesQuota  = "quota-bytes"
	inodesQuota = "quota-inodes"
)

// request describes a scope with those of its limits that its volume can enforce. The limit of
// bytes comes from the policies too; the limit of files is the scope's own.
func request(scope *ent.QuotaScope, vol *ent.Volume, bytes *int64) *storagepb.ScopeRequest {
	q := &storagepb.ScopeRequest{Volume: vol.Name, Scope: scope.HolderID.String()}
	unknown := len(vol.Capabilities) == 0 // then the proxy checks
	if unknown || slices.Contains(vol.Capabilities, bytesQuota) {
		q.LimitBytes = bytes
	}
	if unknown || slices.Contains(vol.Capabilities, inodesQuota) {
		q.LimitInodes = scope.LimitInodes
	}
	return q
}

// limitKind is a quantity that a scope can limit.
type limitKind struct {
	field, capability, said string
	wanted                  func(SetQuotaScopeInput) *int64
	now                     func(*ent.QuotaScope) (used, most *int64)
}

var limitKinds = []limitKind{
	{
		"limitBytes", bytesQuota, "bytes", func(in SetQuotaScopeInput) *int64 { return in.LimitBytes },
		func(s *ent.QuotaScope) (used, most *int64) { return s.UsedBytes, s.LimitBytes },
	},
	{
		"limitInodes", inodesQuota, "files", func(in SetQuotaScopeInput) *int64 { return in.LimitInodes },
		func(s *ent.QuotaScope) (used, most *int64) { return s.UsedInodes, s.LimitInodes },
	},
}

// check returns an error if the volume cannot enforce the limit.
func (l limitKind) check(vol *ent.Volume, limit *int64) error {
	if limit == nil {
		return nil
	}
	if *limit < 0 {
		return problem.Invalid(l.field, "%d %s", *limit, l.said).WithLimit("0..")
	}
	if len(vol.Capabilities) == 0 {
		return problem.Unavailable("the plugin of volume %s has not reported yet which limits the volume supports", vol.Name).WithField(l.field)
	}
	if slices.Contains(vol.Capabilities, l.capability) {
		return nil
	}
	can := "nothing"
	for _, other := range limitKinds {
		if slices.Contains(vol.Capabilities, other.capability) {
			can = other.said
		}
	}
	return problem.Precondition("volume %s (%s) cannot limit %s; it can limit %s", vol.Name, vol.Backend, l.said, can).WithField(l.field)
}

// refused names the field of a limit that a product does not accept, such as zero where zero
// means unlimited.
func refused(err error) error {
	if !errdefs.IsInvalidArgument(err) {
		return err
	}
	said, _ := problem.From(err)
	for _, l := range limitKinds {
		if strings.Contains(said.Message, l.plugins()) {
			return problem.Invalid(l.field, "%s", said.Message).Because(err)
		}
	}
	return err
}

// plugins returns the name of the field in the contract of volume plugins.
func (l limitKind) plugins() string {
	return "limit." + strings.ToLower(strings.TrimPrefix(l.field, "limit"))
}

// full describes a scope's own limit that is reached.
type full struct{ said, most string }

// ownReached returns the scope's own limits that do not allow a folder with this many bytes.
func ownReached(scope *ent.QuotaScope, brings int64) (list []full) {
	for _, l := range limitKinds {
		used, most := l.now(scope)
		more := int64(1)
		if l.capability == bytesQuota {
			more = max(brings, 1)
		}
		if most != nil && used != nil && *used+more > *most {
			list = append(list, full{fmt.Sprintf("the quota scope holds %d %s of %d", *used, l.said, *most), strconv.FormatInt(*most, 10)})
		}
	}
	return list
}
