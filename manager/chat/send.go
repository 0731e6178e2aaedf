package chat

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/chatanswer"
	"github.com/berthhq/berth/ent/chatturn"
	"github.com/berthhq/berth/internal/conversation"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

// SendChatPrompt stores a prompt, and an answer that waits for each column.
func (s *Service) SendChatPrompt(ctx context.Context, in SendChatPromptInput) (*ChatTurnPayload, error) {
	v, _, err := s.mine(ctx, in.Chat, "chat")
	if err != nil {
		return nil, err
	}
	if err := text("prompt", in.Prompt, maxPrompt); err != nil {
		return nil, err
	}
	if in.Prompt == "" && len(in.Attachments) == 0 {
		return nil, problem.Invalid("prompt", "is empty, and there is no attachment")
	}
	files, data, err := attachments(in.Attachments)
	if err != nil {
		return nil, err
	}
	made := id.New(id.ChatTurn)
	err = s.alone(ctx, v, func(ctx context.Context, tx *ent.Tx) error {
		c, err := tx.Chat.Get(ctx, in.Chat)
		if err != nil {
			return permit.Missing(err, "chat", "chat")
		}
		list, err := chosen(c, in.Columns)
		if err != nil {
			return err
		}
		before, err := previous(ctx, tx, in, list)
		if err != nil {
			return err
		}
		if err := s.room(ctx, tx, v.User, len(list)); err != nil {
			return err
		}
		if err := insertTurn(ctx, tx, made, in, files, data); err != nil {
			return err
		}
		for _, x := range list {
			err := answerOf(tx, c, made, x.Number, asked(c, x)).SetNillablePrevious(before[x.Number]).Exec(ctx)
			if err != nil {
				return fmt.Errorf("store answer: %w", err)
			}
		}
		return touch(ctx, tx, c, in.Prompt)
	})
	if err != nil {
		return nil, err
	}
	s.changed(ctx, in.Chat, ByAsking)
	return s.turn(ctx, made)
}

func (s *Service) turn(ctx context.Context, turn uuid.UUID) (*ChatTurnPayload, error) {
	t, err := s.Client.ChatTurn.Get(ctx, turn)
	if err != nil {
		return nil, permit.Missing(err, "turn", "turn")
	}
	return &ChatTurnPayload{t}, nil
}

// answerOf returns the beginning of a new answer.
func answerOf(tx *ent.Tx, c *ent.Chat, turn uuid.UUID, place int, with conversation.Asked) *ent.ChatAnswerCreate {
	return tx.ChatAnswer.Create().SetTurnID(turn).SetChatID(c.ID).SetOwnerID(c.OwnerID).SetPlace(place).SetAsked(with).SetHidden(Hides(c)).
		SetNote("waiting for a gateway")
}

func insertTurn(ctx context.Context, tx *ent.Tx, turn uuid.UUID, in SendChatPromptInput, files []conversation.Attachment, data []byte) error {
	n, err := tx.ChatTurn.Query().Where(chatturn.ChatID(in.Chat)).Count(ctx)
	if err != nil {
		return fmt.Errorf("count turns: %w", err)
	}
	if n >= maxTurns {
		return problem.Exhausted("the chat has %d prompts, begin another chat", n).WithField("chat").WithLimit(fmt.Sprint(maxTurns))
	}
	err = tx.ChatTurn.Create().SetID(turn).SetChatID(in.Chat).SetNillablePrevious(in.Previous).SetPrompt(in.Prompt).SetFiles(files).Exec(ctx)
	if err != nil {
		return fmt.Errorf("store turn: %w", err)
	}
	if len(data) == 0 {
		return nil
	}
	if err := tx.ChatContent.Create().SetTurnID(turn).SetChatID(in.Chat).SetData(data).Exec(ctx); err != nil {
		return fmt.Errorf("store attachments: %w", err)
	}
	return nil
}

// chosen returns the columns with the numbers, or all.
func chosen(c *ent.Chat, numbers []int) ([]conversation.Column, error) {
	if numbers == nil {
		return c.Asks, nil
	}
	var list []conversation.Column
	for i, n := range numbers {
		x, err := column(c, n)
		if err != nil || slices.Contains(numbers[:i], n) {
			return nil, problem.Invalid("columns", "%d is not a column of the chat, or occurs twice", n)
		}
		list = append(list, x)
	}
	if len(list) == 0 {
		return nil, problem.Invalid("columns", "is empty")
	}
	return list, nil
}

// room checks that the user can have more answers that have not ended.
func (s *Service) room(ctx context.Context, tx *ent.Tx, user uuid.UUID, more int) error {
	n, err := tx.ChatAnswer.Query().Where(chatanswer.OwnerID(user), chatanswer.EndedAtIsNil(), chatanswer.ReplayIDIsNil()).Count(ctx)
	if err != nil {
		return fmt.Errorf("count answers: %w", err)
	}
	if n+more > maxRunning {
		return problem.Exhausted("%d of your answers have not ended, and this would start %d more; at most %d can run", n, more, maxRunning).
			WithField("columns").WithLimit(fmt.Sprint(maxRunning))
	}
	return nil
}

// previous returns the answers with which columns continue, by the number of the column.
func previous(ctx context.Context, tx *ent.Tx, in SendChatPromptInput, list []conversation.Column) (map[int]*uuid.UUID, error) {
	out := map[int]*uuid.UUID{}
	if in.Previous == nil {
		if len(in.After) > 0 {
			return nil, problem.Invalid("after", "a prompt that begins a conversation continues no answer")
		}
		return out, nil
	}
	is, err := tx.ChatTurn.Query().Where(chatturn.ID(*in.Previous), chatturn.ChatID(in.Chat)).Exist(ctx)
	if err != nil {
		return nil, fmt.Errorf("read turn: %w", err)
	}
	if !is {
		return nil, problem.NotFound("turn").WithField("previous")
	}
	rows, err := answersOf(ctx, tx.ChatAnswer, *in.Previous)
	if err != nil {
		return nil, err
	}
	for _, x := range list {
		out[x.Number] = newest(rows, x.Number)
	}
	for i, x := range in.After {
		at := fmt.Sprintf("after.%d", i)
		j := slices.IndexFunc(rows, func(a *ent.ChatAnswer) bool { return a.ID == x.Answer && a.Place == x.Column })
		switch {
		case j < 0:
			return nil, problem.NotFound("answer of the previous turn in this column").WithField(at + ".answer")
		case rows[j].EndedAt == nil || rows[j].Text == "":
			return nil, problem.Precondition("the answer has not ended, or has no text").WithField(at + ".answer")
		}
		out[x.Column] = &rows[j].ID
	}
	return out, nil
}

// answersOf returns the answers to a prompt, the oldest first, without those of replays.
func answersOf(ctx context.Context, c *ent.ChatAnswerClient, turn uuid.UUID) ([]*ent.ChatAnswer, error) {
	rows, err := c.Query().Where(chatanswer.TurnID(turn), chatanswer.ReplayIDIsNil()).Order(chatanswer.ByCreatedAt(), chatanswer.ByID()).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read answers: %w", err)
	}
	return rows, nil
}

// newest returns the newest answer of a column that has text. Without one, the prompt continues where the answers without text did.
func newest(rows []*ent.ChatAnswer, place int) (found *uuid.UUID) {
	for _, a := range rows {
		switch {
		case a.Place != place:
		case a.EndedAt != nil && a.Text != "":
			found = &a.ID
		case found == nil:
			found = a.Previous
		}
	}
	return found
}

// RegenerateChatAnswer asks for another answer to a prompt in one column.
func (s *Service) RegenerateChatAnswer(ctx context.Context, in RegenerateChatAnswerInput) (*ChatTurnPayload, error) {
	v, t, err := s.turnOf(ctx, in.Turn)
	if err != nil {
		return nil, err
	}
	err = s.alone(ctx, v, func(ctx context.Context, tx *ent.Tx) error {
		c, err := tx.Chat.Get(ctx, t.ChatID)
		if err != nil {
			return permit.Missing(err, "chat", "turn")
		}
		x, err := column(c, in.Column)
		if err != nil {
			return err
		}
		rows, err := answersOf(ctx, tx.ChatAnswer, t.ID)
		if err != nil {
			return err
		}
		before, err := continued(ctx, tx, t, rows, in.Column)
		if err != nil {
			return err
		}
		if err := s.room(ctx, tx, v.User, 1); err != nil {
			return err
		}
		if err := answerOf(tx, c, t.ID, in.Column, asked(c, x)).SetNillablePrevious(before).Exec(ctx); err != nil {
			return fmt.Errorf("store answer: %w", err)
		}
		return touch(ctx, tx, c, "")
	})
	if err != nil {
		return nil, err
	}
	s.changed(ctx, t.ChatID, ByAsking)
	return s.turn(ctx, t.ID)
}

// continued returns the answer that the column's answers to a prompt continue.
func continued(ctx context.Context, tx *ent.Tx, t *ent.ChatTurn, rows []*ent.ChatAnswer, place int) (*uuid.UUID, error) {
	for _, a := range slices.Backward(rows) {
		if a.Place == place {
			return a.Previous, nil
		}
	}
	if t.Previous == nil {
		return nil, nil
	}
	before, err := answersOf(ctx, tx.ChatAnswer, *t.Previous)
	if err != nil {
		return nil, err
	}
	return newest(before, place), nil
}

// turnOf returns a turn of a chat that the viewer can change.
func (s *Service) turnOf(ctx context.Context, turn uuid.UUID) (*viewer.Viewer, *ent.ChatTurn, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, nil, err
	}
	t, err := s.Client.ChatTurn.Get(ctx, turn)
	if err != nil {
		return nil, nil, permit.Missing(err, "turn", "turn")
	}
	_, _, err = s.mine(ctx, t.ChatID, "turn")
	return v, t, err
}
