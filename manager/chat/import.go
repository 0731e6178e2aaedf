package chat

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/chatanswer"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/conversation"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/chat/live"
	"github.com/berthhq/berth/manager/permit"
)

const (
	maxAnswers = 10_000 // of a document
	maxNote    = 2000   // bytes
)

// ImportChat adds a chat from a document. Its models are found by their names among those that the viewer can use; others keep
// the name and cannot be asked.
func (s *Service) ImportChat(ctx context.Context, in ImportChatInput) (*ChatPayload, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, err
	}
	doc, err := read(in.Document)
	if err != nil {
		return nil, err
	}
	known, err := s.Models(ctx)
	if err != nil {
		return nil, err
	}
	w := importing{doc: doc, known: known, chat: id.New(id.Chat), turns: map[string]uuid.UUID{}, answers: map[string]place{}}
	asks, next, err := w.columns()
	if err != nil {
		return nil, problem.Within(err, "document")
	}
	err = s.insert(ctx, v, func(ctx context.Context, tx *ent.Tx) error {
		err := tx.Chat.Create().SetID(w.chat).SetTitle(doc.Title).SetAsks(asks).SetNextNumber(next).SetDomainID(v.Domain).SetOwnerID(v.User).Exec(ctx)
		if err != nil {
			return err
		}
		for i, t := range doc.Turns {
			if err := w.turn(ctx, tx, v, t); err != nil {
				return problem.Within(err, fmt.Sprintf("document.turns.%d", i))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s.payload(ctx, w.chat)
}

// read parses a document.
func read(text string) (*document, error) {
	if len(text) > maxDocument {
		return nil, problem.Invalid("document", "has %d bytes, at most %d are allowed", len(text), maxDocument).WithLimit(fmt.Sprint(maxDocument))
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	doc := &document{}
	if err := d.Decode(doc); err != nil {
		return nil, problem.Invalid("document", "is not a chat in JSON: %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, problem.Invalid("document", "has something after its object")
	}
	if doc.Format != format {
		return nil, problem.Invalid("document.format", "is %.100q, want %q", doc.Format, format)
	}
	if err := checkTitle(&doc.Title); err != nil {
		return nil, problem.Within(err, "document")
	}
	if n := len(doc.Turns); n > maxTurns {
		return nil, problem.Invalid("document.turns", "has %d turns, at most %d are allowed", n, maxTurns).WithLimit(fmt.Sprint(maxTurns))
	}
	return doc, nil
}

// importing is a document on its way into the database.
type importing struct {
	doc     *document
	known   []*conversation.Model
	chat    uuid.UUID
	turns   map[string]uuid.UUID // by the id in the document, as for the next one
	answers map[string]place
}

// place is where an answer is.
type place struct {
	id, turn uuid.UUID
	column   int
}

// model returns the model that the viewer can use with the name.
func (w *importing) model(m *docModel) (conversation.Model, error) {
	if m == nil {
		return conversation.Model{}, nil
	}
	if err := text("model.name", m.Name, maxModelName); err != nil {
		return conversation.Model{}, err
	}
	for _, k := range w.known {
		if k.Name == m.Name && m.Outside == (k.EndpointID != nil) {
			return *k, nil // any revision: numbers of another cluster mean other revisions
		}
	}
	return conversation.Model{Name: m.Name}, nil
}

func (w *importing) columns() (list []conversation.Column, next int, err error) {
	if n := len(w.doc.Columns); n == 0 || n > maxColumns {
		return nil, 0, problem.Invalid("columns", "has %d columns, 1 to %d are allowed", n, maxColumns).WithLimit(fmt.Sprint(maxColumns))
	}
	for i, x := range w.doc.Columns {
		at := fmt.Sprintf("columns.%d", i)
		if x.Number < 0 || x.Number > maxTurns || slices.ContainsFunc(list, func(o conversation.Column) bool { return o.Number == x.Number }) {
			return nil, 0, problem.Invalid(at+".number", "%d is not between 0 and %d, or occurs twice", x.Number, maxTurns)
		}
		c := conversation.Column{Number: x.Number}
		if c.Model, err = w.model(x.Model); err != nil {
			return nil, 0, problem.Within(err, at)
		}
		if c.Parameters, err = parameters(&x.Parameters); err != nil {
			return nil, 0, problem.Within(err, at+".parameters")
		}
		list, next = append(list, c), max(next, x.Number+1)
	}
	for _, t := range w.doc.Turns { // numbers of columns that were removed are not used again
		for _, a := range t.Answers {
			next = max(next, min(a.Column, maxTurns)+1)
		}
	}
	return list, next, nil
}

// turn stores a turn and its answers. It refers only to turns and answers before it.
func (w *importing) turn(ctx context.Context, tx *ent.Tx, v *viewer.Viewer, t docTurn) error {
	if err := text("prompt", t.Prompt, maxPrompt); err != nil {
		return err
	}
	if _, twice := w.turns[t.ID]; twice {
		return problem.Invalid("id", "%.100q occurs twice", t.ID)
	}
	in := SendChatPromptInput{Chat: w.chat, Prompt: t.Prompt}
	if t.Previous != "" {
		before, is := w.turns[t.Previous]
		if !is {
			return problem.Invalid("previous", "%.100q is not the id of a turn before it", t.Previous)
		}
		in.Previous = &before
	}
	for _, f := range t.Attachments {
		in.Attachments = append(in.Attachments, ChatAttachmentInput{f.Name, f.Type, base64.StdEncoding.EncodeToString(f.Data)})
	}
	files, data, err := attachments(in.Attachments)
	if err != nil {
		return err
	}
	made := id.New(id.ChatTurn)
	w.turns[t.ID] = made
	if err := insertTurn(ctx, tx, made, in, files, data); err != nil {
		return err
	}
	for i, a := range t.Answers {
		if err := w.answer(ctx, tx, v, made, in.Previous, a); err != nil {
			return problem.Within(err, fmt.Sprintf("answers.%d", i))
		}
	}
	return nil
}

func (w *importing) answer(ctx context.Context, tx *ent.Tx, v *viewer.Viewer, turn uuid.UUID, before *uuid.UUID, a docAnswer) error {
	_, twice := w.answers[a.ID]
	switch {
	case twice || len(w.answers) == maxAnswers:
		return problem.Invalid("id", "%.100q occurs twice, or the document has more than %d answers", a.ID, maxAnswers).WithLimit(fmt.Sprint(maxAnswers))
	case a.Column < 0 || a.Column > maxTurns:
		return problem.Invalid("column", "%d is not between 0 and %d", a.Column, maxTurns)
	}
	if err := errors.Join(text("text", a.Text, live.MaxText), text("reasoning", a.Reasoning, live.MaxText), text("message", a.Message, maxNote)); err != nil {
		return err
	}
	m, err := w.model(a.Model)
	if err != nil {
		return err
	}
	with, err := parameters(&a.Parameters)
	if err != nil {
		return problem.Within(err, "parameters")
	}
	c := tx.ChatAnswer.Create().SetID(id.New(id.ChatAnswer)).SetTurnID(turn).SetChatID(w.chat).SetOwnerID(v.User).SetPlace(a.Column).
		SetAsked(conversation.Asked{Model: m, Parameters: with}).SetNote(a.Message).SetText(a.Text).SetReasoning(a.Reasoning).SetMeasured(a.Metrics).
		SetStatus(ended(a.Status)).SetEndedAt(clock.Now())
	if a.Created.After(time.Unix(0, 0)) && a.Created.Before(clock.Now()) {
		c.SetCreatedAt(a.Created)
	}
	if a.Previous != "" {
		p, is := w.answers[a.Previous]
		if !is || p.turn == turn || before == nil {
			return problem.Invalid("previous", "%.100q is not the id of an answer of a turn before it", a.Previous)
		}
		c.SetPrevious(p.id)
	}
	row, err := c.Save(ctx)
	if err != nil {
		return fmt.Errorf("store answer: %w", err)
	}
	w.answers[a.ID] = place{row.ID, turn, a.Column}
	return nil
}

// ended returns the status of an answer that no gateway runs.
func ended(s chatanswer.Status) chatanswer.Status {
	if s == chatanswer.StatusDone || s == chatanswer.StatusStopped || s == chatanswer.StatusFailed {
		return s
	}
	return chatanswer.StatusInterrupted
}
