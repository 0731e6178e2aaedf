package serving

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/promptrecord"
	"github.com/berthhq/berth/gateway/inference"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/viewer"
)

const (
	// maxPrompts limits the content of records that wait for the database, in bytes. More are dropped.
	maxPrompts = 16 << 20
	// promptBatch is the number of records in one statement.
	promptBatch = 50
)

// prompts stores the requests and answers of deployments that record them, in batches.
type prompts struct {
	client *ent.Client
	log    *slog.Logger
	meter  *meter

	mu      sync.Mutex
	pending []prompt
	size    int // bytes
}

// prompt is a record on its way to the database.
type prompt struct {
	inference.Record
	inference.Content
	id         uuid.UUID
	deployment uuid.UUID
	revision   *int
	user       *uuid.UUID
	at         time.Time
}

func (p *prompts) init(client *ent.Client, m *meter, log *slog.Logger) {
	p.client, p.meter, p.log = client, m, log
}

// of returns what keeps the requests of a user to a deployment; nil if it does not record them.
func (p *prompts) of(d *model, user *uuid.UUID) func(inference.Record, inference.Content) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.recorded {
		return nil
	}
	return func(r inference.Record, c inference.Content) {
		p.add(prompt{Record: r, Content: c, id: id.New(id.PromptRecord), deployment: d.id, revision: d.revisionOf(r.Replica), user: user, at: clock.Now()})
	}
}

// revisionOf returns the revision of a replica; nil if there is no such replica.
func (d *model) revisionOf(id string) *int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.replicas[id]; r != nil {
		return &r.revision
	}
	return nil
}

func (p *prompts) add(one prompt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(one.Request) + len(one.Answer)
	if p.size+n > maxPrompts {
		p.meter.prompts.WithLabelValues("dropped").Inc()
		return
	}
	p.size += n
	p.pending = append(p.pending, one)
}

// run stores records until ctx ends, and then what is left.
func (p *prompts) run(ctx context.Context) {
	tick := time.NewTicker(storeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
			defer cancel()
			p.store(last)
			return
		case <-tick.C:
			p.store(ctx)
		}
	}
}

// store stores what is pending. What cannot be stored stays pending.
func (p *prompts) store(ctx context.Context) {
	ctx = viewer.SystemContext(ctx)
	for {
		p.mu.Lock()
		batch := p.pending[:min(promptBatch, len(p.pending))]
		p.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		if err := p.insert(ctx, batch); err != nil {
			if ctx.Err() == nil {
				p.log.WarnContext(ctx, "store recorded requests", "error", err)
			}
			return
		}
		p.mu.Lock()
		p.pending = p.pending[len(batch):]
		for _, one := range batch {
			p.size -= len(one.Request) + len(one.Answer)
		}
		p.mu.Unlock()
	}
}

// insert stores a batch, also if a part of it is stored already. If a deployment or user in it was deleted, it stores the others and drops those records.
func (p *prompts) insert(ctx context.Context, batch []prompt) error {
	rows := make([]*ent.PromptRecordCreate, len(batch))
	for i, one := range batch {
		rows[i] = p.client.PromptRecord.Create().SetID(one.id).SetCreatedAt(one.at).SetDeploymentID(one.deployment).SetNillableRevision(one.revision).SetNillableUserID(one.user).
			SetPath(one.Path).SetStatus(one.Status).SetRequest(one.Request).SetAnswer(one.Answer).SetTruncated(one.Truncated).
			SetPromptTokens(one.Usage.Prompt).SetCompletionTokens(one.Usage.Completion).
			SetFirstByteMs(int(one.FirstByte.Milliseconds())).SetDurationMs(int(one.Duration.Milliseconds()))
	}
	err := p.client.PromptRecord.CreateBulk(rows...).OnConflictColumns(promptrecord.FieldID).DoNothing().Exec(ctx)
	if !ent.IsConstraintError(err) {
		if err == nil {
			p.meter.prompts.WithLabelValues("stored").Add(float64(len(batch)))
		}
		return err
	}
	if len(batch) == 1 {
		p.meter.prompts.WithLabelValues("dropped").Inc()
		return nil
	}
	for i := range batch {
		if err := p.insert(ctx, batch[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}
