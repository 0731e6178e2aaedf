package chat

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/chatanswer"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
)

// StopChatAnswers stops answers that have not ended. One that no gateway has taken ends at once, others when their gateway stops
// the request.
func (s *Service) StopChatAnswers(ctx context.Context, in StopChatAnswersInput) (*ChatPayload, error) {
	v, _, err := s.mine(ctx, in.Chat, "chat")
	if err != nil {
		return nil, err
	}
	err = s.alone(ctx, v, func(ctx context.Context, tx *ent.Tx) error {
		if in.Answers != nil {
			n, err := tx.ChatAnswer.Query().Where(chatanswer.IDIn(in.Answers...), chatanswer.ChatID(in.Chat)).Count(ctx)
			if err != nil {
				return fmt.Errorf("read answers: %w", err)
			}
			if n < distinct(in.Answers) {
				return problem.NotFound("answer").WithField("answers")
			}
		}
		up := tx.ChatAnswer.Update().Where(chatanswer.ChatID(in.Chat), chatanswer.EndedAtIsNil()).SetStopping(true)
		if in.Answers != nil {
			up.Where(chatanswer.IDIn(in.Answers...))
		}
		if err := up.Exec(ctx); err != nil {
			return fmt.Errorf("stop answers: %w", err)
		}
		err := tx.ChatAnswer.Update().Where(chatanswer.ChatID(in.Chat), chatanswer.EndedAtIsNil(), chatanswer.Stopping(true), chatanswer.GatewayIsNil()).
			SetStatus(chatanswer.StatusStopped).SetNote("").SetEndedAt(clock.Now()).Exec(ctx)
		if err != nil {
			return fmt.Errorf("stop answers: %w", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.changed(ctx, in.Chat, ByStopping)
	return s.payload(ctx, in.Chat)
}

func distinct(ids []uuid.UUID) int {
	set := map[uuid.UUID]bool{}
	for _, one := range ids {
		set[one] = true
	}
	return len(set)
}
