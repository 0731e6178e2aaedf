package vfolder

import (
	"context"
	"log/slog"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/quotascope"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/storage/storagepb"
)

// shelf is a database with two users' scopes on one volume.
type shelf struct {
	*identitytest.World
	*Service
	ctx      context.Context
	from, to *ent.QuotaScope
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	w, bus := identitytest.New(t), event.New(nil, nil)
	h := &shelf{World: w, ctx: viewer.SystemContext(t.Context()), Service: &Service{
		Config:  Config{Client: w.Client, Bus: bus, Policies: policy.New(policy.Config{Client: w.Client, Bus: bus}), Logger: slog.New(slog.DiscardHandler)},
		rounded: map[string]rounded{},
	}}
	vol := w.Client.Volume.Create().SetName("main").SetProxy(w.Client.StorageProxy.Create().SetName("s1").SaveX(h.ctx)).SaveX(h.ctx)
	scope := func(holder uuid.UUID) *ent.QuotaScope {
		return w.Client.QuotaScope.Create().SetKind(quotascope.KindUser).SetHolderID(holder).SetDomainID(w.A.ID).SetVolume(vol).SaveX(h.ctx)
	}
	h.from, h.to = scope(w.A.Member.ID), scope(w.A.Loner.ID)
	return h
}

// A folder whose files were deleted in a scope that it has left in the meantime is not deleted yet.
func TestGoneWhereItWas(t *testing.T) {
	h := newShelf(t)
	folder := func(name, path string) *ent.Vfolder {
		return h.Client.Vfolder.Create().SetName(name).SetPath(path).SetStatus(vfolder.StatusDeleting).SetDomainID(h.A.ID).
			SetCreatorID(h.A.Member.ID).SetOwnerID(h.A.Member.ID).SetQuotaScope(h.from).SaveX(h.ctx)
	}
	before := folder("data", "p")
	moved := h.Client.Vfolder.UpdateOne(before).SetQuotaScope(h.to).SetOwnerID(h.A.Loner.ID).SaveX(h.ctx)
	if err := h.gone(h.ctx, before); err == nil {
		t.Error("deleted in its old place, and counted as deleted")
	}
	if f := h.Client.Vfolder.GetX(h.ctx, before.ID); f.Status != vfolder.StatusDeleting {
		t.Errorf("it is %s", f.Status)
	}
	if err := h.gone(h.ctx, moved); err != nil {
		t.Error(err)
	}
	if f := h.Client.Vfolder.GetX(h.ctx, before.ID); f.Status != vfolder.StatusDeleted {
		t.Errorf("deleted where it is, and %s", f.Status)
	}
	never := folder("never", "")
	if err := h.gone(h.ctx, never); err != nil {
		t.Error(err)
	}
	if n := h.Client.Vfolder.Query().Where(vfolder.ID(never.ID)).CountX(h.ctx); n != 0 {
		t.Error("the row of a folder that never was is left")
	}
}

// Settling gives each quota scope its effective limit, and records the usage.
func TestSettle(t *testing.T) {
	h := newShelf(t)
	small := h.Client.ResourcePolicy.Create().SetName("small").SetMaxScopeBytes(2048).SaveX(h.ctx)
	h.Client.PolicyAttachment.Create().SetPolicy(small).SetUser(h.A.Member).ExecX(h.ctx)
	if err := h.syncScopes(h.ctx); err != nil { // no proxy serves the volume
		t.Fatal(err)
	}
	if s := h.Client.QuotaScope.GetX(h.ctx, h.from.ID); s.UsedBytes != nil || s.MeasuredAt != nil {
		t.Errorf("measured by no proxy: %v", s)
	}
	r := &rounder{used: amount(77)}
	h.proxies = map[string]*proxy{"s1": {rpc: r, volumes: map[string]storagepb.Volume_Health{"main": storagepb.Volume_HEALTHY}}}
	h.Client.QuotaScope.DeleteOne(h.to).ExecX(h.ctx)
	if err := h.syncScopes(h.ctx); err != nil {
		t.Fatal(err)
	}
	if s := h.Client.QuotaScope.GetX(h.ctx, h.from.ID); s.UsedBytes == nil || *s.UsedBytes != 77 || s.MeasuredAt == nil || s.Enforcement != "hard" {
		t.Errorf("noted %v", s)
	}
	if r.limit == nil || *r.limit != 2048 {
		t.Errorf("limited to %v", r.limit)
	}
}
