package chat

import (
	"context"
	"fmt"
	"slices"

	"github.com/berthhq/berth/ent"
	entchat "github.com/berthhq/berth/ent/chat"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/conversation"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
)

// CreateChat stores an empty chat.
func (s *Service) CreateChat(ctx context.Context, in CreateChatInput) (*ChatPayload, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkTitle(in.Title); err != nil {
		return nil, err
	}
	for i := range in.Columns {
		if in.Columns[i].Number != nil {
			return nil, problem.Invalid(fmt.Sprintf("columns.%d.number", i), "a new chat has no column with a number")
		}
	}
	list, next, err := s.columns(ctx, v, in.Columns, nil, 0)
	if err != nil {
		return nil, err
	}
	blind := in.Blind != nil && *in.Blind
	if blind && len(list) < 2 {
		return nil, problem.Invalid("blind", "a blind chat needs at least 2 columns")
	}
	if blind {
		shuffle(list)
	}
	made := id.New(id.Chat)
	err = s.insert(ctx, v, func(ctx context.Context, tx *ent.Tx) error {
		return tx.Chat.Create().SetID(made).SetNillableTitle(in.Title).SetAsks(list).SetNextNumber(next).SetBlind(blind).
			SetDomainID(v.Domain).SetOwnerID(v.User).Exec(ctx)
	})
	if err != nil {
		return nil, err
	}
	return s.payload(ctx, made)
}

// insert stores a chat of the viewer within the limit.
func (s *Service) insert(ctx context.Context, v *viewer.Viewer, do func(ctx context.Context, tx *ent.Tx) error) error {
	return s.alone(ctx, v, func(ctx context.Context, tx *ent.Tx) error {
		n, err := tx.Chat.Query().Where(entchat.OwnerID(v.User)).Count(ctx)
		if err != nil {
			return fmt.Errorf("count chats: %w", err)
		}
		if n >= maxChats {
			return problem.Exhausted("you have %d chats, delete one first", n).WithField("chats").WithLimit(fmt.Sprint(maxChats))
		}
		if err := do(ctx, tx); err != nil {
			return fmt.Errorf("store chat: %w", err)
		}
		return nil
	})
}

// alone runs a transaction that no other change of the viewer's chats interferes with.
func (s *Service) alone(ctx context.Context, v *viewer.Viewer, do func(ctx context.Context, tx *ent.Tx) error) error {
	ctx = viewer.SystemContext(ctx)
	return store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		if err := store.Lock(ctx, tx, "chats of "+v.User.String()); err != nil {
			return err
		}
		return do(ctx, tx)
	})
}

// UpdateChat changes a chat.
func (s *Service) UpdateChat(ctx context.Context, in UpdateChatInput) (*ChatPayload, error) {
	v, c, err := s.mine(ctx, in.ID, "id")
	if err != nil {
		return nil, err
	}
	if err := checkTitle(in.Title); err != nil {
		return nil, err
	}
	err = s.alone(ctx, v, func(sys context.Context, tx *ent.Tx) error {
		if c, err = tx.Chat.Get(sys, in.ID); err != nil {
			return permit.Missing(err, "chat", "id")
		}
		up := c.Update().SetNillableTitle(in.Title).SetNillableShared(in.Shared)
		if in.Columns != nil {
			if Hides(c) {
				return problem.Precondition("the columns of a blind chat cannot change before the vote").WithField("columns")
			}
			list, next, err := s.columns(ctx, v, in.Columns, c.Asks, c.NextNumber)
			if err != nil {
				return err
			}
			up.SetAsks(list).SetNextNumber(next)
		}
		if err := up.Exec(sys); err != nil {
			return fmt.Errorf("change chat: %w", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.changed(ctx, in.ID, "")
	return s.payload(ctx, in.ID)
}

// DeleteChat deletes a chat with its answers. Gateways stop those that have not ended.
func (s *Service) DeleteChat(ctx context.Context, in DeleteChatInput) (*DeleteChatPayload, error) {
	if _, _, err := s.mine(ctx, in.ID, "id"); err != nil {
		return nil, err
	}
	if err := s.Client.Chat.DeleteOneID(in.ID).Exec(viewer.SystemContext(ctx)); err != nil && !ent.IsNotFound(err) {
		return nil, fmt.Errorf("delete chat: %w", err)
	}
	s.changed(ctx, in.ID, ByStopping)
	return &DeleteChatPayload{in.ID}, nil
}

// column returns the column with a number.
func column(c *ent.Chat, number int) (conversation.Column, error) {
	i := slices.IndexFunc(c.Asks, func(x conversation.Column) bool { return x.Number == number })
	if i < 0 {
		return conversation.Column{}, problem.NotFound(fmt.Sprintf("column %d of the chat", number)).WithField("column")
	}
	return c.Asks[i], nil
}

// asked returns what the answers of a column are asked with.
func asked(c *ent.Chat, x conversation.Column) conversation.Asked {
	return conversation.Asked{Model: x.Model, Parameters: x.Parameters, CommonSystem: commonSystem(c.Asks)}
}

// touch notes that a chat has a new prompt or answer.
func touch(ctx context.Context, tx *ent.Tx, c *ent.Chat, prompt string) error {
	up := tx.Chat.UpdateOneID(c.ID).SetUpdatedAt(clock.Now())
	if c.Title == "" && prompt != "" {
		up.SetTitle(titleOf(prompt))
	}
	if err := up.Exec(ctx); err != nil {
		return permit.Missing(err, "chat", "chat")
	}
	return nil
}
