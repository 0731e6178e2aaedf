package chat

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/chatanswer"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/chat/live"
)

// orphansEvery is the time between two looks for answers whose gateway has ended.
const orphansEvery = 2 * time.Second

// Lead ends the answers of gateways that do not report, until ctx ends.
func (s *Service) Lead(ctx context.Context) {
	var o Orphans
	tick := clock.NewTicker("chats", orphansEvery)
	defer tick.Stop()
	for {
		if err := o.End(ctx, s.Client, s.Live, s.Bus); err != nil && ctx.Err() == nil {
			s.Logger.WarnContext(ctx, "end the answers of gateways that are gone", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Orphans finds answers whose gateway has ended. The zero value knows of none.
type Orphans struct {
	missed []uuid.UUID // gateways that did not report at the last look
}

// End interrupts the answers of gateways that did not report at two looks in a row: at one look, Redis may have lost its memory.
func (o *Orphans) End(ctx context.Context, client *ent.Client, store live.Store, bus *event.Bus) error {
	ctx = viewer.SystemContext(ctx)
	var gateways []uuid.UUID
	err := client.ChatAnswer.Query().Where(chatanswer.EndedAtIsNil(), chatanswer.GatewayNotNil()).Unique(true).
		Select(chatanswer.FieldGateway).Scan(ctx, &gateways)
	if err != nil {
		return fmt.Errorf("read gateways: %w", err)
	}
	gone, err := store.Gone(ctx, gateways)
	if err != nil {
		return err
	}
	last := o.missed
	o.missed = gone
	for _, g := range gone {
		if !slices.Contains(last, g) {
			continue
		}
		rows, err := client.ChatAnswer.Query().Where(chatanswer.EndedAtIsNil(), chatanswer.Gateway(g)).All(ctx)
		if err != nil {
			return fmt.Errorf("read answers: %w", err)
		}
		if err := Interrupt(ctx, client, store, bus, rows); err != nil {
			return err
		}
	}
	return nil
}

// Interrupt ends answers that no gateway runs any longer, with the text so far.
func Interrupt(ctx context.Context, client *ent.Client, store live.Store, bus *event.Bus, rows []*ent.ChatAnswer) error {
	ctx = viewer.SystemContext(ctx)
	from := map[uuid.UUID]live.Place{}
	for _, a := range rows {
		from[a.ID] = live.Place{}
	}
	if len(from) == 0 {
		return nil
	}
	texts, err := store.Read(ctx, from)
	if err != nil {
		return err
	}
	for _, a := range rows {
		up := client.ChatAnswer.Update().Where(chatanswer.ID(a.ID), chatanswer.EndedAtIsNil()).
			SetStatus(chatanswer.StatusInterrupted).SetNote("the gateway that received the answer has ended").SetEndedAt(clock.Now())
		if p := texts[a.ID]; len(p.Text)+len(p.Reasoning) > len(a.Text)+len(a.Reasoning) {
			up.SetText(p.Text).SetReasoning(p.Reasoning)
		}
		if err := up.Exec(ctx); err != nil {
			return fmt.Errorf("interrupt answer %s: %w", a.ID, err)
		}
		by := ByAnswer
		if a.ReplayID != nil {
			by = ByAsking // the next one of the replay can start
		}
		bus.Publish(ctx, event.Event{Topic: event.Chat, ID: a.ChatID, By: by})
	}
	return nil
}
