package graph

import (
	"context"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/ent/kernel"
	entsession "github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/collective"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/session/peers"
)

// clusterOf has the variables about the other kernels and the hardware that programs in a kernel
// get.
type clusterOf struct {
	variables map[string]string
	direct    []collective.Status
}

// Variables returns the environment variables that the platform sets in a kernel for programs over
// several kernels or accelerators.
func (r kernelResolver) Variables(ctx context.Context, k *ent.Kernel) (map[string]string, error) {
	of, err := loaders(ctx).clusters.Load(ctx, k.ID)
	if of.variables == nil {
		of.variables = map[string]string{}
	}
	return of.variables, err
}

// GpuDirect returns the state of GPUDirect in a kernel.
func (r kernelResolver) GpuDirect(ctx context.Context, k *ent.Kernel) ([]*collective.Status, error) {
	of, err := loaders(ctx).clusters.Load(ctx, k.ID)
	return pointers(of.direct), err
}

// loadClusters describes kernels that the viewer can see and that have a machine. The devices of their
// allocations are read without the viewer, because only what the container itself sees is returned.
func (r *Resolver) loadClusters(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]clusterOf, error) {
	rows, err := r.Client.Kernel.Query().
		Where(kernel.IDIn(ids...), kernel.HasAllocationsWith(allocation.FreedAtIsNil())).
		WithAllocations(func(q *ent.AllocationQuery) { q.Where(allocation.FreedAtIsNil()).WithDevice() }).
		WithSession(func(q *ent.SessionQuery) {
			q.Select(entsession.FieldEnvironment, entsession.FieldArrayID, entsession.FieldArrayIndex).WithArray().WithKernels(func(q *ent.KernelQuery) {
				q.Select(kernel.FieldIndex, kernel.FieldHostname, kernel.FieldSessionID)
			})
		}).
		All(viewer.SystemContext(ctx))
	out := make(map[uuid.UUID]clusterOf, len(rows))
	for _, k := range rows {
		out[k.ID] = clusterOf{peers.Variables(k.Edges.Session, k), collective.Direct(peers.Collective(k.Edges.Session, k))}
	}
	return out, err
}
