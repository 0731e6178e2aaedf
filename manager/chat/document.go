package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/chatanswer"
	"github.com/berthhq/berth/ent/chatcontent"
	"github.com/berthhq/berth/ent/chatturn"
	"github.com/berthhq/berth/internal/conversation"
	"github.com/berthhq/berth/manager/permit"
)

// format is the name and version of documents.
const format = "berth.chat/1"

// document is a chat as JSON. The ids of turns and answers are only references within it.
type document struct {
	Format  string      `json:"format"`
	Title   string      `json:"title"`
	Columns []docColumn `json:"columns"`
	Blind   bool        `json:"blind,omitempty"` // only for readers
	Turns   []docTurn   `json:"turns"`
	Created time.Time   `json:"createdAt,omitzero"`
}

type docColumn struct {
	Number     int                     `json:"number"`
	Model      *docModel               `json:"model,omitempty"` // nil: hidden
	Parameters conversation.Parameters `json:"parameters,omitzero"`
}

// docModel names a model. A program that imports it looks for one with this name.
type docModel struct {
	Name     string `json:"name"`
	Revision *int   `json:"revision,omitempty"`
	Outside  bool   `json:"outside,omitempty"` // of an endpoint outside the cluster
}

type docTurn struct {
	ID          string          `json:"id"`
	Previous    string          `json:"previous,omitempty"`
	Prompt      string          `json:"prompt"`
	Attachments []docAttachment `json:"attachments,omitempty"`
	Answers     []docAnswer     `json:"answers"`
	Created     time.Time       `json:"createdAt,omitzero"`
}

type docAttachment struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Data []byte `json:"data"`
}

type docAnswer struct {
	ID         string                  `json:"id"`
	Column     int                     `json:"column"`
	Previous   string                  `json:"previous,omitempty"`
	Status     chatanswer.Status       `json:"status"`
	Message    string                  `json:"message,omitempty"`
	Text       string                  `json:"text"`
	Reasoning  string                  `json:"reasoning,omitempty"`
	Model      *docModel               `json:"model,omitempty"`
	Parameters conversation.Parameters `json:"parameters,omitzero"`
	Revision   *int                    `json:"revision,omitempty"`
	Metrics    *conversation.Metrics   `json:"metrics,omitempty"`
	Created    time.Time               `json:"createdAt,omitzero"`
}

func docModelOf(m conversation.Model, hidden bool) *docModel {
	if hidden {
		return nil
	}
	return &docModel{Name: m.Name, Revision: m.Revision, Outside: m.EndpointID != nil}
}

// Export returns a chat that the viewer can see as JSON, with all branches. It has no replays and votes, and of a blind chat before
// the vote nothing about the models.
func (s *Service) Export(ctx context.Context, id uuid.UUID) (string, error) {
	c, err := s.Client.Chat.Get(ctx, id)
	if err != nil {
		return "", permit.Missing(err, "chat", "id")
	}
	turns, err := s.Client.ChatTurn.Query().Where(chatturn.ChatID(id)).Order(chatturn.ByCreatedAt(), chatturn.ByID()).All(ctx)
	if err != nil {
		return "", fmt.Errorf("read turns: %w", err)
	}
	answers, err := s.Client.ChatAnswer.Query().Where(chatanswer.ChatID(id), chatanswer.ReplayIDIsNil()).
		Order(chatanswer.ByPlace(), chatanswer.ByCreatedAt(), chatanswer.ByID()).All(ctx)
	if err != nil {
		return "", fmt.Errorf("read answers: %w", err)
	}
	files, err := s.Client.ChatContent.Query().Where(chatcontent.ChatID(id)).All(ctx)
	if err != nil {
		return "", fmt.Errorf("read attachments: %w", err)
	}
	out := document{Format: format, Title: c.Title, Blind: Hides(c), Created: c.CreatedAt, Turns: []docTurn{}}
	for _, x := range Columns(c) {
		column := docColumn{Number: x.Number, Parameters: x.Parameters}
		if x.Model != nil {
			column.Model = docModelOf(*x.Model, false)
		}
		out.Columns = append(out.Columns, column)
	}
	for _, t := range turns {
		out.Turns = append(out.Turns, docTurnOf(t, answers, files))
	}
	text, err := json.MarshalIndent(out, "", "  ")
	return string(text), err
}

func docTurnOf(t *ent.ChatTurn, answers []*ent.ChatAnswer, files []*ent.ChatContent) docTurn {
	out := docTurn{ID: t.ID.String(), Prompt: t.Prompt, Created: t.CreatedAt, Answers: []docAnswer{}}
	if t.Previous != nil {
		out.Previous = t.Previous.String()
	}
	for _, f := range files {
		if f.TurnID != t.ID {
			continue
		}
		for _, a := range AttachmentsOf(t) {
			out.Attachments = append(out.Attachments, docAttachment{a.Name, a.Type, f.Data[a.From : a.From+a.Size]})
		}
	}
	for _, a := range answers {
		if a.TurnID != t.ID {
			continue
		}
		x := docAnswer{
			ID: a.ID.String(), Column: a.Place, Status: a.Status, Message: Message(a), Text: a.Text, Reasoning: a.Reasoning,
			Model: docModelOf(a.Asked.Model, a.Hidden), Parameters: a.Asked.Shown(a.Hidden), Created: a.CreatedAt,
		}
		if a.Previous != nil {
			x.Previous = a.Previous.String()
		}
		if !a.Hidden {
			x.Revision, x.Metrics = a.AnsweredBy, a.Measured
		}
		out.Answers = append(out.Answers, x)
	}
	return out
}

// Message returns why an answer waits or failed. Of a hidden model, it does not say what could name the model.
func Message(a *ent.ChatAnswer) string {
	switch {
	case !a.Hidden || a.Note == "":
		return a.Note
	case a.Status == chatanswer.StatusFailed:
		return "the request failed; the reason is shown after the vote"
	case a.Status == chatanswer.StatusWaiting:
		return "waiting for the model"
	}
	return a.Note
}
