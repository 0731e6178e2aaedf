package graph

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entchat "github.com/berthhq/berth/ent/chat"
	"github.com/berthhq/berth/ent/chatanswer"
	"github.com/berthhq/berth/ent/chatcontent"
	"github.com/berthhq/berth/ent/chatendpoint"
	"github.com/berthhq/berth/ent/chatreplay"
	"github.com/berthhq/berth/ent/chatturn"
	"github.com/berthhq/berth/ent/chatvote"
	entdeployment "github.com/berthhq/berth/ent/deployment"
	entdomain "github.com/berthhq/berth/ent/domain"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/internal/conversation"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/chat"
)

type (
	chatResolver           struct{ *Resolver }
	chatTurnResolver       struct{ *Resolver }
	chatAnswerResolver     struct{ *Resolver }
	chatReplayResolver     struct{ *Resolver }
	chatModelResolver      struct{ *Resolver }
	chatParametersResolver struct{ *Resolver }
	chatAttachmentResolver struct{ *Resolver }
	chatEndpointResolver   struct{ *Resolver }
)

// maxWords and maxSearch limit a search, in words and bytes.
const (
	maxWords  = 10
	maxSearch = 200
)

// Chats lists the viewer's own chats: those that others share are read with their links.
func (r queryResolver) Chats(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.ChatOrder, where *ent.ChatWhereInput, text *string) (*ent.ChatConnection, error) {
	q := r.Client.Chat.Query().Where(entchat.OwnerID(viewer.From(ctx).User))
	if text != nil {
		words := strings.Fields(*text)
		if len(words) > maxWords || len(*text) > maxSearch {
			return nil, problem.Invalid("text", "has %d words and %d bytes, at most %d words and %d bytes are allowed", len(words), len(*text), maxWords, maxSearch)
		}
		for _, w := range words {
			q.Where(mentions(w))
		}
	}
	return q.Paginate(ctx, after, first, before, last, ent.WithChatOrder(orderBy), ent.WithChatFilter(where.Filter))
}

// mentions matches chats with a word in the title, a prompt or an answer.
func mentions(word string) predicate.Chat {
	return entchat.Or(entchat.TitleContainsFold(word), entchat.HasTurnsWith(chatturn.Or(
		chatturn.PromptContainsFold(word),
		chatturn.HasResultsWith(chatanswer.TextContainsFold(word)),
	)))
}

func (r queryResolver) Chat(ctx context.Context, id uuid.UUID) (*ent.Chat, error) {
	q, err := r.Client.Chat.Query().Where(entchat.ID(id)).CollectFields(ctx, "Chat", "Node")
	if err != nil {
		return nil, err
	}
	c, err := q.Only(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	return c, err
}

func (r queryResolver) ChatModels(ctx context.Context) ([]*conversation.Model, error) {
	return r.Resolver.Chats.Models(ctx)
}

func (r queryResolver) ExportChat(ctx context.Context, id uuid.UUID) (string, error) {
	return r.Resolver.Chats.Export(ctx, id)
}

func (r queryResolver) ChatTally(ctx context.Context, deployment *uuid.UUID) ([]*chat.Tally, error) {
	return r.Resolver.Chats.Tallies(ctx, deployment)
}

func (r queryResolver) ChatEndpoints(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.ChatEndpointOrder, where *ent.ChatEndpointWhereInput) (*ent.ChatEndpointConnection, error) {
	return r.Client.ChatEndpoint.Query().Paginate(ctx, after, first, before, last, ent.WithChatEndpointOrder(orderBy), ent.WithChatEndpointFilter(where.Filter))
}

// whole reads a chat again if the query selected only some of its columns.
func (r *Resolver) whole(ctx context.Context, c *ent.Chat) (*ent.Chat, error) {
	if c.OwnerID != uuid.Nil {
		return c, nil
	}
	return r.Client.Chat.Get(ctx, c.ID)
}

func (r chatResolver) Columns(ctx context.Context, c *ent.Chat) ([]*chat.Column, error) {
	c, err := r.whole(ctx, c)
	if err != nil {
		return nil, err
	}
	return chat.Columns(c), nil
}

func (r chatResolver) Own(ctx context.Context, c *ent.Chat) (bool, error) {
	c, err := r.whole(ctx, c)
	return err == nil && c.OwnerID == viewer.From(ctx).User, err
}

func (r chatResolver) Replays(ctx context.Context, c *ent.Chat) ([]*ent.ChatReplay, error) {
	return r.Client.ChatReplay.Query().Where(chatreplay.ChatID(c.ID)).Order(chatreplay.ByCreatedAt(), chatreplay.ByID()).All(ctx)
}

func (r chatReplayResolver) Answers(ctx context.Context, x *ent.ChatReplay) ([]*chat.Comparison, error) {
	return r.Resolver.Chats.Comparisons(ctx, x.ID)
}

func (r chatTurnResolver) Attachments(ctx context.Context, t *ent.ChatTurn) ([]*chat.Attachment, error) {
	return chat.AttachmentsOf(t), nil
}

func (r chatTurnResolver) Answers(ctx context.Context, t *ent.ChatTurn) ([]*ent.ChatAnswer, error) {
	list, err := loaders(ctx).chatAnswers.Load(ctx, t.ID)
	if list == nil {
		list = []*ent.ChatAnswer{}
	}
	return list, err
}

func (r chatTurnResolver) Votes(ctx context.Context, t *ent.ChatTurn) ([]*ent.ChatVote, error) {
	list, err := loaders(ctx).chatVotes.Load(ctx, t.ID)
	if list == nil {
		list = []*ent.ChatVote{}
	}
	return list, err
}

// loadChatAnswers reads the answers to prompts, without those of replays.
func (r *Resolver) loadChatAnswers(ctx context.Context, turns []uuid.UUID) (map[uuid.UUID][]*ent.ChatAnswer, error) {
	rows, err := r.Client.ChatAnswer.Query().Where(chatanswer.TurnIDIn(turns...), chatanswer.ReplayIDIsNil()).
		Order(chatanswer.ByPlace(), chatanswer.ByCreatedAt(), chatanswer.ByID()).All(ctx)
	m := map[uuid.UUID][]*ent.ChatAnswer{}
	for _, a := range rows {
		m[a.TurnID] = append(m[a.TurnID], a)
	}
	return m, err
}

func (r *Resolver) loadChatVotes(ctx context.Context, turns []uuid.UUID) (map[uuid.UUID][]*ent.ChatVote, error) {
	rows, err := r.Client.ChatVote.Query().Where(chatvote.TurnIDIn(turns...)).Order(chatvote.ByCreatedAt(sql.OrderDesc())).All(ctx)
	m := map[uuid.UUID][]*ent.ChatVote{}
	for _, v := range rows {
		m[v.TurnID] = append(m[v.TurnID], v)
	}
	return m, err
}

func (r *Resolver) loadChatContents(ctx context.Context, turns []uuid.UUID) (map[uuid.UUID][]byte, error) {
	rows, err := r.Client.ChatContent.Query().Where(chatcontent.TurnIDIn(turns...)).All(ctx)
	m := map[uuid.UUID][]byte{}
	for _, c := range rows {
		m[c.TurnID] = c.Data
	}
	return m, err
}

func (r *Resolver) loadChatDeployments(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]*ent.Deployment, error) {
	q, err := r.Client.Deployment.Query().Where(entdeployment.IDIn(ids...)).CollectFields(ctx, "Deployment", "Node")
	if err != nil {
		return nil, err
	}
	all, err := q.All(ctx)
	return byID(all, func(d *ent.Deployment) uuid.UUID { return d.ID }), err
}

func (r *Resolver) loadChatEndpoints(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]*ent.ChatEndpoint, error) {
	all, err := r.Client.ChatEndpoint.Query().Where(chatendpoint.IDIn(ids...)).All(ctx)
	return byID(all, func(e *ent.ChatEndpoint) uuid.UUID { return e.ID }), err
}

func (r chatAttachmentResolver) Data(ctx context.Context, a *chat.Attachment) (string, error) {
	data, err := loaders(ctx).chatContents.Load(ctx, a.Turn)
	if err != nil {
		return "", err
	}
	if a.From+a.Size > len(data) {
		return "", fmt.Errorf("the attachments of turn %s have %d bytes", a.Turn, len(data))
	}
	return base64.StdEncoding.EncodeToString(data[a.From : a.From+a.Size]), nil
}

func (chatAnswerResolver) Message(_ context.Context, a *ent.ChatAnswer) (string, error) {
	return chat.Message(a), nil
}

func (chatAnswerResolver) Model(_ context.Context, a *ent.ChatAnswer) (*conversation.Model, error) {
	if a.Hidden {
		return nil, nil
	}
	return &a.Asked.Model, nil
}

func (chatAnswerResolver) Parameters(_ context.Context, a *ent.ChatAnswer) (*conversation.Parameters, error) {
	p := a.Asked.Shown(a.Hidden)
	return &p, nil
}

func (chatAnswerResolver) Revision(_ context.Context, a *ent.ChatAnswer) (*int, error) {
	if a.Hidden {
		return nil, nil
	}
	return a.AnsweredBy, nil
}

func (chatAnswerResolver) Metrics(_ context.Context, a *ent.ChatAnswer) (*conversation.Metrics, error) {
	if a.Hidden {
		return nil, nil
	}
	return a.Measured, nil
}

func (r chatAnswerResolver) Session(ctx context.Context, a *ent.ChatAnswer) (*ent.Session, error) {
	if a.Hidden || a.SessionID == nil {
		return nil, nil
	}
	return loaders(ctx).queued.Load(ctx, *a.SessionID)
}

func (r chatModelResolver) Deployment(ctx context.Context, m *conversation.Model) (*ent.Deployment, error) {
	if m.DeploymentID == nil {
		return nil, nil
	}
	return loaders(ctx).chatDeployments.Load(ctx, *m.DeploymentID)
}

func (r chatModelResolver) Endpoint(ctx context.Context, m *conversation.Model) (*ent.ChatEndpoint, error) {
	if m.EndpointID == nil {
		return nil, nil
	}
	return loaders(ctx).chatEndpoints.Load(ctx, *m.EndpointID)
}

func (chatParametersResolver) Stop(_ context.Context, p *conversation.Parameters) ([]string, error) {
	if p.Stop == nil {
		return []string{}, nil
	}
	return p.Stop, nil
}

func (r chatEndpointResolver) URL(ctx context.Context, e *ent.ChatEndpoint) (string, error) {
	if !viewer.From(ctx).Superadmin() {
		return "", nil
	}
	return e.Address, nil
}

func (chatEndpointResolver) HasKey(_ context.Context, e *ent.ChatEndpoint) (bool, error) {
	return len(e.KeySealed) > 0, nil
}

// Domains returns those that the viewer can see.
func (r chatEndpointResolver) Domains(ctx context.Context, e *ent.ChatEndpoint) ([]*ent.Domain, error) {
	if len(e.Audience) == 0 {
		return []*ent.Domain{}, nil
	}
	return r.Client.Domain.Query().Where(entdomain.IDIn(e.Audience...)).Order(entdomain.ByName()).All(ctx)
}

func (r mutationResolver) CreateChat(ctx context.Context, input chat.CreateChatInput) (*chat.ChatPayload, error) {
	return r.Chats.CreateChat(ctx, input)
}

func (r mutationResolver) UpdateChat(ctx context.Context, input chat.UpdateChatInput) (*chat.ChatPayload, error) {
	return r.Chats.UpdateChat(ctx, input)
}

func (r mutationResolver) DeleteChat(ctx context.Context, input chat.DeleteChatInput) (*chat.DeleteChatPayload, error) {
	return r.Chats.DeleteChat(ctx, input)
}

func (r mutationResolver) SendChatPrompt(ctx context.Context, input chat.SendChatPromptInput) (*chat.ChatTurnPayload, error) {
	return r.Chats.SendChatPrompt(ctx, input)
}

func (r mutationResolver) RegenerateChatAnswer(ctx context.Context, input chat.RegenerateChatAnswerInput) (*chat.ChatTurnPayload, error) {
	return r.Chats.RegenerateChatAnswer(ctx, input)
}

func (r mutationResolver) StopChatAnswers(ctx context.Context, input chat.StopChatAnswersInput) (*chat.ChatPayload, error) {
	return r.Chats.StopChatAnswers(ctx, input)
}

func (r mutationResolver) VoteChatAnswer(ctx context.Context, input chat.VoteChatAnswerInput) (*chat.ChatPayload, error) {
	return r.Chats.VoteChatAnswer(ctx, input)
}

func (r mutationResolver) ReplayChat(ctx context.Context, input chat.ReplayChatInput) (*chat.ChatReplayPayload, error) {
	return r.Chats.ReplayChat(ctx, input)
}

func (r mutationResolver) ImportChat(ctx context.Context, input chat.ImportChatInput) (*chat.ChatPayload, error) {
	return r.Chats.ImportChat(ctx, input)
}

func (r mutationResolver) CreateChatEndpoint(ctx context.Context, input chat.CreateChatEndpointInput) (*chat.ChatEndpointPayload, error) {
	return r.Chats.CreateChatEndpoint(ctx, input)
}

func (r mutationResolver) UpdateChatEndpoint(ctx context.Context, input chat.UpdateChatEndpointInput) (*chat.ChatEndpointPayload, error) {
	return r.Chats.UpdateChatEndpoint(ctx, input)
}

func (r mutationResolver) DeleteChatEndpoint(ctx context.Context, input chat.DeleteChatEndpointInput) (*chat.DeleteChatEndpointPayload, error) {
	return r.Chats.DeleteChatEndpoint(ctx, input)
}

func (r subscriptionResolver) ChatUpdates(ctx context.Context, id uuid.UUID) (<-chan *chat.Update, error) {
	return r.Chats.Watch(ctx, id)
}
