package chatting

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/chatanswer"
	"github.com/berthhq/berth/ent/chatcontent"
	"github.com/berthhq/berth/ent/chatturn"
	"github.com/berthhq/berth/gateway/inference"
	"github.com/berthhq/berth/internal/conversation"
)

// maxChain limits the prompts of a conversation.
const maxChain = 2000

// chainOf selects an answer and those before it, the oldest first.
const chainOf = `
WITH RECURSIVE chain(id, previous, n) AS (
	SELECT id, previous, 0 FROM chat_answers WHERE id = $1
	UNION ALL
	SELECT a.id, a.previous, c.n + 1 FROM chat_answers a JOIN chain c ON a.id = c.previous WHERE a.chat_id = $2 AND c.n < $3
) SELECT id FROM chain ORDER BY n DESC`

// say is one message of a request.
type say struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
}

type piece struct {
	Type  string  `json:"type"`
	Text  string  `json:"text,omitempty"`
	Image *linked `json:"image_url,omitempty"`
}

type linked struct {
	URL string `json:"url"`
}

// bodyOf returns the body of the request for an answer.
func (s *Service) bodyOf(ctx context.Context, a *ent.ChatAnswer) ([]byte, error) {
	messages, err := s.messages(ctx, a)
	if err != nil {
		return nil, err
	}
	p := a.Asked.Parameters
	if p.System != "" {
		messages = append([]say{{"system", p.System}}, messages...)
	}
	body := map[string]any{
		"model": a.Asked.Model.Name, "messages": messages, "stream": true, "stream_options": map[string]any{"include_usage": true},
	}
	add(body, "temperature", p.Temperature)
	add(body, "top_p", p.TopP)
	add(body, "max_tokens", p.MaxTokens)
	add(body, "presence_penalty", p.PresencePenalty)
	add(body, "frequency_penalty", p.FrequencyPenalty)
	add(body, "seed", p.Seed)
	if len(p.Stop) > 0 {
		body["stop"] = p.Stop
	}
	if p.Schema != "" {
		body["response_format"] = map[string]any{
			"type": "json_schema", "json_schema": map[string]any{"name": "answer", "schema": json.RawMessage(p.Schema)},
		}
	}
	text, err := json.Marshal(body)
	if err == nil && len(text) > inference.MaxBody {
		err = failure(fmt.Sprintf("the conversation with its attachments has more than %d MiB", inference.MaxBody>>20))
	}
	return text, err
}

func add[T any](body map[string]any, name string, value *T) {
	if value != nil {
		body[name] = *value
	}
}

// messages returns the conversation up to the prompt of an answer.
func (s *Service) messages(ctx context.Context, a *ent.ChatAnswer) ([]say, error) {
	chain, err := s.chain(ctx, a)
	if err != nil {
		return nil, err
	}
	rows, err := s.Client.ChatAnswer.Query().Where(chatanswer.IDIn(chain...)).Select(chatanswer.FieldID, chatanswer.FieldTurnID, chatanswer.FieldText).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read answers: %w", err)
	}
	answers, turns := map[uuid.UUID]*ent.ChatAnswer{}, []uuid.UUID{}
	for _, x := range rows {
		answers[x.ID], turns = x, append(turns, x.TurnID)
	}
	prompts, err := s.prompts(ctx, turns)
	if err != nil {
		return nil, err
	}
	var out []say
	for _, id := range chain {
		x := answers[id]
		if x == nil { // deleted meanwhile
			return nil, failure("the chat was deleted")
		}
		out = append(out, say{"user", prompts[x.TurnID]})
		if id != a.ID {
			out = append(out, say{"assistant", x.Text})
		}
	}
	return out, nil
}

func (s *Service) chain(ctx context.Context, a *ent.ChatAnswer) (list []uuid.UUID, err error) {
	rows, err := s.Client.QueryContext(ctx, chainOf, a.ID, a.ChatID, maxChain)
	if err != nil {
		return nil, fmt.Errorf("read conversation: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var id uuid.UUID
		if err := rows.Scan(&id); err != nil {
			return nil, fmt.Errorf("read conversation: %w", err)
		}
		list = append(list, id)
	}
	return list, rows.Err()
}

// prompts returns the contents of the messages of prompts.
func (s *Service) prompts(ctx context.Context, turns []uuid.UUID) (map[uuid.UUID]any, error) {
	rows, err := s.Client.ChatTurn.Query().Where(chatturn.IDIn(turns...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read prompts: %w", err)
	}
	contents, err := s.Client.ChatContent.Query().Where(chatcontent.TurnIDIn(turns...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read attachments: %w", err)
	}
	data := map[uuid.UUID][]byte{}
	for _, c := range contents {
		data[c.TurnID] = c.Data
	}
	out := map[uuid.UUID]any{}
	for _, t := range rows {
		out[t.ID] = content(t.Prompt, t.Files, data[t.ID])
	}
	return out, nil
}

// content returns a prompt with its attachments. Texts are a part of it; with images, it is a list.
func content(prompt string, files []conversation.Attachment, data []byte) any {
	var text strings.Builder
	text.WriteString(prompt)
	var images []piece
	for _, f := range files {
		own := data[:min(f.Size, len(data))]
		data = data[len(own):]
		if f.Type == conversation.Text {
			fmt.Fprintf(&text, "\n\n<file name=%q>\n%s\n</file>", f.Name, own)
			continue
		}
		images = append(images, piece{Type: "image_url", Image: &linked{"data:" + f.Type + ";base64," + base64.StdEncoding.EncodeToString(own)}})
	}
	if len(images) == 0 {
		return text.String()
	}
	if text.Len() == 0 {
		return images
	}
	return append([]piece{{Type: "text", Text: text.String()}}, images...)
}
