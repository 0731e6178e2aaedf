package chat

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/chatanswer"
	"github.com/berthhq/berth/ent/chatvote"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/permit"
)

// VoteChatAnswer replaces the vote on a prompt. The first vote of a blind chat shows the names of its models.
func (s *Service) VoteChatAnswer(ctx context.Context, in VoteChatAnswerInput) (*ChatPayload, error) {
	v, t, err := s.turnOf(ctx, in.Turn)
	if err != nil {
		return nil, err
	}
	if n := len(in.Answers); n < 2 || n > maxColumns {
		return nil, problem.Invalid("answers", "has %d answers, 2 to %d are allowed", n, maxColumns).WithLimit(fmt.Sprint(maxColumns))
	}
	if in.Winner != nil && !slices.Contains(in.Answers, *in.Winner) {
		return nil, problem.Invalid("winner", "is not among the answers")
	}
	err = s.alone(ctx, v, func(ctx context.Context, tx *ent.Tx) error {
		c, err := tx.Chat.Get(ctx, t.ChatID)
		if err != nil {
			return permit.Missing(err, "chat", "turn")
		}
		if err := comparable(ctx, tx, t.ID, in.Answers); err != nil {
			return err
		}
		if _, err := tx.ChatVote.Delete().Where(chatvote.TurnID(t.ID)).Exec(ctx); err != nil {
			return fmt.Errorf("replace vote: %w", err)
		}
		err = tx.ChatVote.Create().SetTurnID(t.ID).SetChatID(c.ID).SetDomainID(c.DomainID).SetAnswers(in.Answers).SetNillableWinner(in.Winner).
			SetBlind(Hides(c)).Exec(ctx)
		if err != nil {
			return fmt.Errorf("store vote: %w", err)
		}
		return reveal(ctx, tx, c)
	})
	if err != nil {
		return nil, err
	}
	s.changed(ctx, t.ChatID, "")
	return s.payload(ctx, t.ChatID)
}

// comparable checks the answers of a vote: each ended, and of another column of the turn.
func comparable(ctx context.Context, tx *ent.Tx, turn uuid.UUID, ids []uuid.UUID) error {
	rows, err := answersOf(ctx, tx.ChatAnswer, turn)
	if err != nil {
		return err
	}
	places := map[int]bool{}
	for _, one := range ids {
		i := slices.IndexFunc(rows, func(a *ent.ChatAnswer) bool { return a.ID == one })
		switch {
		case i < 0:
			return problem.NotFound("answer of the turn").WithField("answers")
		case places[rows[i].Place]:
			return problem.Invalid("answers", "two answers are of column %d", rows[i].Place)
		case rows[i].EndedAt == nil:
			return problem.Precondition("an answer has not ended").WithField("answers")
		}
		places[rows[i].Place] = true
	}
	return nil
}

func reveal(ctx context.Context, tx *ent.Tx, c *ent.Chat) error {
	if !Hides(c) {
		return nil
	}
	if err := c.Update().SetVoted(true).Exec(ctx); err != nil {
		return fmt.Errorf("show the models: %w", err)
	}
	if err := tx.ChatAnswer.Update().Where(chatanswer.ChatID(c.ID)).SetHidden(false).Exec(ctx); err != nil {
		return fmt.Errorf("show the models: %w", err)
	}
	return nil
}
