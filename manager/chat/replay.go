package chat

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/chatanswer"
	"github.com/berthhq/berth/ent/chatreplay"
	"github.com/berthhq/berth/ent/chatturn"
	"github.com/berthhq/berth/internal/conversation"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/permit"
)

// ReplayChat repeats the answers of a column on the path to a turn with another model. Every prompt is sent with the recorded
// conversation before it.
func (s *Service) ReplayChat(ctx context.Context, in ReplayChatInput) (*ChatReplayPayload, error) {
	v, c, err := s.mine(ctx, in.Chat, "chat")
	if err != nil {
		return nil, err
	}
	if Hides(c) { // the parameters of its answers would be visible
		return nil, problem.Precondition("a blind chat can be repeated after the vote").WithField("chat")
	}
	m, err := s.model(ctx, v, in.Model)
	if err != nil {
		return nil, problem.Within(err, "model")
	}
	with, err := parameters(in.Parameters)
	if err != nil {
		return nil, problem.Within(err, "parameters")
	}
	made := id.New(id.Other)
	err = s.alone(ctx, v, func(ctx context.Context, tx *ent.Tx) error {
		list, err := originals(ctx, tx, in)
		if err != nil {
			return err
		}
		n, err := tx.ChatAnswer.Query().Where(chatanswer.OwnerID(v.User), chatanswer.EndedAtIsNil(), chatanswer.ReplayIDNotNil()).Count(ctx)
		if err != nil {
			return fmt.Errorf("count answers: %w", err)
		}
		if n+len(list) > maxReplayed {
			return problem.Exhausted("%d answers of your replays have not ended, and this would start %d more", n, len(list)).
				WithField("turn").WithLimit(fmt.Sprint(maxReplayed))
		}
		if err := tx.ChatReplay.Create().SetID(made).SetChatID(c.ID).SetModel(m).SetPlace(in.Column).Exec(ctx); err != nil {
			return fmt.Errorf("store replay: %w", err)
		}
		for _, a := range list {
			asked := conversation.Asked{Model: m, Parameters: with}
			if in.Parameters == nil {
				asked.Parameters = a.Asked.Parameters
			}
			err := answerOf(tx, c, a.TurnID, in.Column, asked).SetReplayID(made).SetOriginal(a.ID).SetNillablePrevious(a.Previous).Exec(ctx)
			if err != nil {
				return fmt.Errorf("store answer: %w", err)
			}
		}
		return touch(ctx, tx, c, "")
	})
	if err != nil {
		return nil, err
	}
	s.changed(ctx, in.Chat, ByAsking)
	r, err := s.Client.ChatReplay.Query().Where(chatreplay.ID(made)).Only(ctx)
	if err != nil {
		return nil, permit.Missing(err, "replay", "chat")
	}
	return &ChatReplayPayload{r}, nil
}

// originals returns the newest answer of the column that has text, for each turn on the path to the last one.
func originals(ctx context.Context, tx *ent.Tx, in ReplayChatInput) ([]*ent.ChatAnswer, error) {
	turns, err := tx.ChatTurn.Query().Where(chatturn.ChatID(in.Chat)).Order(chatturn.ByCreatedAt(), chatturn.ByID()).
		Select(chatturn.FieldID, chatturn.FieldPrevious, chatturn.FieldCreatedAt).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read turns: %w", err)
	}
	byID := map[uuid.UUID]*ent.ChatTurn{}
	for _, t := range turns {
		byID[t.ID] = t
	}
	var last *ent.ChatTurn
	if in.Turn != nil {
		last = byID[*in.Turn]
	} else if len(turns) > 0 {
		last = turns[len(turns)-1]
	}
	if last == nil {
		return nil, problem.NotFound("turn").WithField("turn")
	}
	var list []*ent.ChatAnswer
	for t := last; t != nil; {
		rows, err := tx.ChatAnswer.Query().Where(chatanswer.TurnID(t.ID), chatanswer.Place(in.Column), chatanswer.ReplayIDIsNil(), chatanswer.EndedAtNotNil(), chatanswer.TextNEQ("")).
			Order(chatanswer.ByCreatedAt(), chatanswer.ByID()).All(ctx)
		if err != nil {
			return nil, fmt.Errorf("read answers: %w", err)
		}
		if len(rows) > 0 {
			list = append(list, rows[len(rows)-1])
		}
		if t.Previous == nil {
			break
		}
		t = byID[*t.Previous]
	}
	if len(list) == 0 {
		return nil, problem.NotFound(fmt.Sprintf("answer with text in column %d", in.Column)).WithField("column")
	}
	slices.Reverse(list)
	return list, nil
}

// Comparisons returns the answers of a replay with those that they repeat, as the viewer can see them.
func (s *Service) Comparisons(ctx context.Context, replay uuid.UUID) ([]*Comparison, error) {
	repeated, err := s.Client.ChatAnswer.Query().Where(chatanswer.ReplayID(replay)).Order(chatanswer.ByCreatedAt(), chatanswer.ByID()).
		WithAskedIn().All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read replay: %w", err)
	}
	ids := make([]uuid.UUID, 0, len(repeated))
	for _, a := range repeated {
		ids = append(ids, *a.Original)
	}
	rows, err := s.Client.ChatAnswer.Query().Where(chatanswer.IDIn(ids...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read replay: %w", err)
	}
	byID := map[uuid.UUID]*ent.ChatAnswer{}
	for _, a := range rows {
		byID[a.ID] = a
	}
	out := []*Comparison{}
	for _, a := range repeated {
		if o := byID[*a.Original]; o != nil && a.Edges.AskedIn != nil {
			out = append(out, compare(a.Edges.AskedIn.Prompt, o, a))
		}
	}
	return out, nil
}

func compare(prompt string, original, repeated *ent.ChatAnswer) *Comparison {
	c := &Comparison{Prompt: prompt, Original: original, Repeated: repeated}
	if repeated.EndedAt != nil {
		equal, alike := original.Text == repeated.Text, similarity(original.Text, repeated.Text)
		c.Equal, c.Similarity = &equal, &alike
	}
	return c
}
