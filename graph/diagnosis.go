package graph

import (
	"context"

	"github.com/berthhq/berth/manager/diagnosis"
)

func (r queryResolver) Diagnosis(ctx context.Context) (*diagnosis.Diagnosis, error) {
	return r.Resolver.Diagnosis.Diagnose(ctx), nil
}
