package process

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"google.golang.org/grpc"
)

// Described is a running plugin with its description.
type Described[D any] struct {
	*Process
	// Description is the validated response to the plugin's first call.
	Description D

	again func(context.Context) error
}

// describer is a contract's client. Every contract has this call, which uses neither hardware nor
// product.
type describer[Q, D any] interface {
	Describe(ctx context.Context, q *Q, o ...grpc.CallOption) (D, error)
}

// Launch starts a program, creates the client of its contract and calls Describe, with who as the
// caller's name. This is the first call that shows that both sides understand each other: if only
// one side uses TLS, everything before it succeeds. The caller must close the process.
func Launch[S describer[Q, D], Q, D any](ctx context.Context, c Contract, o Options, dial func(grpc.ClientConnInterface) S, who *Q, check func(D) error) (client S, p *Described[D], err error) {
	if o.StartTimeout <= 0 {
		o.StartTimeout = startTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, o.StartTimeout)
	defer cancel()
	started, err := start(ctx, c, o)
	if err != nil {
		return client, nil, fmt.Errorf("start plugin %s: %w", o.Path, err)
	}
	p = &Described[D]{Process: started}
	conn, err := started.connect(c.Service)
	if err == nil {
		client = dial(conn)
		p.Description, err = client.Describe(ctx, who)
	}
	if err == nil {
		err = check(p.Description)
	}
	if err != nil {
		return client, nil, errors.Join(fmt.Errorf("load plugin %s: %w", o.Path, err), started.Close())
	}
	p.again = func(ctx context.Context) error {
		if _, err := client.Describe(ctx, new(Q)); err != nil {
			return fmt.Errorf("ping plugin %s: %w", filepath.Base(o.Path), err)
		}
		return nil
	}
	return client, p, nil
}

// Ping calls the plugin and returns an error if it does not respond in time, which detects a
// process that hangs.
func (p *Described[D]) Ping(ctx context.Context) error { return p.again(ctx) }
