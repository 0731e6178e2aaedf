package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver/rest"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

const (
	rules   = "/api/storage/quota/rules"
	reports = "/api/storage/quota/reports"
)

// rule is a quota rule of a qtree; with an empty name it applies to all qtrees, for accounting
// only.
type rule struct {
	UUID  string `json:"uuid"`
	Qtree name   `json:"qtree"`
	Space bound  `json:"space"`
	Files bound  `json:"files"`
}

type bound struct {
	Hard *int64 `json:"hard_limit,omitempty"`
}

// lifted is the value that removes a limit.
const lifted = -1

// inactive are the error codes for a rule that was created, changed or deleted but is not effective
// until quotas are disabled and enabled again.
var inactive = []string{"5308567", "5308568", "5308569", "5308571", "5308572"}

// alreadyOn is the error code for enabling quotas that are enabled.
const alreadyOn = "5308507"

// code returns the array's error code in a response or job.
func code(err error) string { return rest.Code(err) }

// prepareQuotas enables quotas and creates the rule for all qtrees. With it, the usage of every
// qtree is reported, and later rules are effective at once.
func (f *flexvol) prepareQuotas(ctx context.Context, state string) error {
	if !f.options.ManageQuotas {
		if state == "off" {
			return errors.New("quotas are off on this volume (volume quota on, or the option manage_quotas)")
		}
		return nil
	}
	every, err := f.rule(ctx, "")
	if err != nil {
		return err
	}
	if every == nil {
		err := f.post(ctx, "", &pb.Limit{})
		if err := f.held(ctx, err); err != nil {
			return fmt.Errorf("create a rule for all qtrees: %w", err)
		}
	}
	if state != "off" {
		return nil
	}
	if err := f.turn(ctx, true); err != nil {
		return fmt.Errorf("turn quotas on: %w", err)
	}
	return nil
}

// turn enables or disables quotas.
func (f *flexvol) turn(ctx context.Context, on bool) error {
	err := f.change(ctx, http.MethodPatch, "/api/storage/volumes/"+f.uuid, map[string]any{"quota": map[string]any{"enabled": on}})
	if on && code(err) == alreadyOn {
		return nil
	}
	return err
}

// rule returns the rule of a scope, or nil.
func (f *flexvol) rule(ctx context.Context, scope string) (*rule, error) {
	q := query("volume.uuid", f.uuid, "type", "tree", "fields", "uuid,qtree.name,space.hard_limit,files.hard_limit")
	if scope != "" { // an empty value would select nothing
		q.Set("qtree.name", scope)
	}
	for r, err := range all[rule](ctx, f, rules, q) {
		if err != nil {
			return nil, err
		}
		if r.Qtree.Name == scope {
			return &r, nil
		}
	}
	return nil, nil
}

// limit creates or changes a scope's rule.
func (f *flexvol) limit(ctx context.Context, scope string, limit *pb.Limit) error {
	have, err := f.rule(ctx, scope)
	if err != nil {
		return err
	}
	if have == nil {
		if limit.Bytes == nil && limit.Inodes == nil {
			return nil
		}
		failed := f.post(ctx, scope, limit)
		if failed == nil || slices.Contains(inactive, code(failed)) {
			return f.held(ctx, failed)
		}
		// Another proxy may have created it, or an earlier response was lost.
		if have, err = f.rule(ctx, scope); have == nil || err != nil {
			return fmt.Errorf("limit qtree %s: %w", scope, failed)
		}
	}
	body := map[string]bound{"space": {orLifted(limit.Bytes)}, "files": {orLifted(limit.Inodes)}}
	err = f.change(ctx, http.MethodPatch, rules+"/"+have.UUID, body)
	if err := f.held(ctx, err); err != nil {
		return fmt.Errorf("limit qtree %s: %w", scope, err)
	}
	return nil
}

func (f *flexvol) post(ctx context.Context, scope string, limit *pb.Limit) error {
	body := map[string]any{"svm": name{f.options.SVM}, "volume": id{f.uuid}, "type": "tree", "qtree": name{scope}}
	if limit.Bytes != nil {
		body["space"] = bound{limit.Bytes}
	}
	if limit.Inodes != nil {
		body["files"] = bound{limit.Inodes}
	}
	return f.change(ctx, http.MethodPost, rules, body)
}

func orLifted(n *int64) *int64 {
	if n == nil {
		n = new(int64)
		*n = lifted
	}
	return n
}

// held makes the array enforce a rule that it has stored but does not enforce yet. No limit of the
// volume is enforced while quotas are disabled and recounted, but this is short, and a rule that is
// never enforced would be worse.
func (f *flexvol) held(ctx context.Context, err error) error {
	if !slices.Contains(inactive, code(err)) {
		return err
	}
	if !f.options.ManageQuotas {
		return status.Errorf(codes.FailedPrecondition,
			"the array enforces the limit only after quotas have been turned off and on, which the option manage_quotas allows the plugin: %v", err)
	}
	f.restart.Lock()
	defer f.restart.Unlock()
	if err := f.turn(ctx, false); err != nil {
		var v info
		if rerr := f.client.Get(ctx, "/api/storage/volumes/"+f.uuid, query("fields", "quota.state"), &v); rerr != nil || v.Quota.State != "off" {
			return fmt.Errorf("turn quotas off: %w", errors.Join(err, rerr))
		}
	}
	if err := f.turn(ctx, true); err != nil {
		return fmt.Errorf("turn quotas on again: %w", err)
	}
	return nil
}

// dropRule deletes the rule of a deleted scope.
func (f *flexvol) dropRule(ctx context.Context, scope string) error {
	have, err := f.rule(ctx, scope)
	if have == nil || err != nil {
		return err
	}
	err = f.change(ctx, http.MethodDelete, rules+"/"+have.UUID, nil)
	if rest.IsStatus(err, http.StatusNotFound) || slices.Contains(inactive, code(err)) {
		return nil // the qtree that it applied to is deleted
	}
	return err
}

// usage sets the usage if the array reports it.
func (f *flexvol) usage(ctx context.Context, scope string, out *pb.Scope) error {
	type report struct {
		Qtree name `json:"qtree"`
		Space struct {
			Used struct {
				Total *int64 `json:"total"`
			} `json:"used"`
		} `json:"space"`
		Files struct {
			Used struct {
				Total *int64 `json:"total"`
			} `json:"used"`
		} `json:"files"`
	}
	q := query("volume.uuid", f.uuid, "type", "tree", "qtree.name", scope, "fields", "qtree.name,space.used.total,files.used.total")
	for r, err := range all[report](ctx, f, reports, q) {
		if err != nil {
			return err
		}
		if r.Qtree.Name == scope {
			out.UsedBytes, out.UsedInodes, out.Exact = r.Space.Used.Total, r.Files.Used.Total, r.Space.Used.Total != nil
		}
	}
	return nil
}
