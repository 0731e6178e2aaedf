package chat

import (
	"context"
	"log/slog"
	"math/rand/v2"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/conversation"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/chat/live"
	"github.com/berthhq/berth/manager/permit"
)

// Limits.
const (
	maxColumns    = 8
	maxChats      = 2000 // of a user
	maxTurns      = 2000 // of a chat
	maxRunning    = 16   // answers of a user that have not ended, without those of replays
	maxReplayed   = 200  // answers of replays of a user that have not ended
	maxTitle      = 200  // characters
	maxPrompt     = 256 << 10
	maxImages     = 4 << 20 // bytes of one prompt, as for the next two
	maxTexts      = 1 << 20
	maxAttached   = 8 << 20
	maxFiles      = 32
	maxFileName   = 255 // characters
	maxSystem     = 32 << 10
	maxSchema     = 32 << 10
	maxStops      = 4
	maxStop       = 100 // characters
	maxTokens     = 1_000_000
	maxDocument   = 8 << 20
	maxEndpoints  = 100
	maxModels     = 100 // of an endpoint
	maxModelName  = 200 // bytes
	maxName       = 64  // characters of an endpoint's name
	maxKeyBytes   = 4 << 10
	maxURL        = 2 << 10
	maxChatModels = 1000 // in a list
)

// Marks of events: gateways act on them. Others are about rows alone.
const (
	// ByAsking marks events about answers that wait for a gateway.
	ByAsking = "asking"
	// ByStopping marks events about answers that must stop.
	ByStopping = "stopping"
)

// Config has the dependencies of a Service.
type Config struct {
	Client *ent.Client
	Bus    *event.Bus
	Keys   *seal.Ring
	Live   live.Store
	Logger *slog.Logger
}

// Service changes chats.
type Service struct{ Config }

// New returns a Service.
func New(cfg Config) *Service { return &Service{cfg} }

// mine returns a chat if the viewer can change it, which only its owner can.
func (s *Service) mine(ctx context.Context, chat uuid.UUID, field string) (*viewer.Viewer, *ent.Chat, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, nil, err
	}
	c, err := s.Client.Chat.Get(ctx, chat)
	if err != nil {
		return nil, nil, permit.Missing(err, "chat", field)
	}
	if c.OwnerID != v.User {
		return nil, nil, problem.Forbidden("only the owner of a chat can change it").WithField(field)
	}
	return v, c, nil
}

// changed makes subscriptions read a chat again, and gateways act on the mark.
func (s *Service) changed(ctx context.Context, chat uuid.UUID, by string) {
	s.Bus.Publish(ctx, event.Event{Topic: event.Chat, ID: chat, By: by})
}

// payload reads a chat as the viewer after a change.
func (s *Service) payload(ctx context.Context, id uuid.UUID) (*ChatPayload, error) {
	c, err := s.Client.Chat.Get(ctx, id)
	if err != nil {
		return nil, permit.Missing(err, "chat", "id")
	}
	return &ChatPayload{c}, nil
}

// Hides reports whether the models of a chat are hidden: it is blind, and there was no vote.
func Hides(c *ent.Chat) bool { return c.Blind && !c.Voted }

// Columns returns the columns of a chat as viewers can see them.
func Columns(c *ent.Chat) []*Column {
	out := make([]*Column, len(c.Asks))
	for i, x := range c.Asks {
		asked := conversation.Asked{Model: x.Model, Parameters: x.Parameters, CommonSystem: commonSystem(c.Asks)}
		out[i] = &Column{Number: x.Number, Parameters: asked.Shown(Hides(c))}
		if !Hides(c) {
			out[i].Model = &x.Model
		}
	}
	return out
}

// commonSystem reports whether all columns have the same instruction.
func commonSystem(list []conversation.Column) bool {
	for _, c := range list {
		if c.Parameters.System != list[0].Parameters.System {
			return false
		}
	}
	return true
}

// shuffle gives the columns of a blind chat a random order, and numbers that follow it.
func shuffle(list []conversation.Column) {
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	for i := range list {
		list[i].Number = i
	}
}
