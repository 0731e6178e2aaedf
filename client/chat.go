package client

import "context"

// Chats lists the viewer's chats, the newest first; text "" means all, otherwise those with its words.
func (c *Client) Chats(ctx context.Context, text string, limit int) ([]Chat, error) {
	return collect(limit, func(first *int, after string) (*queryChatsChatsChatConnection, error) {
		out, err := queryChats(ctx, c, first, after, text)
		return &out.Chats, err
	})
}

// Chat reads one chat by id.
func (c *Client) Chat(ctx context.Context, id string) (*Chat, error) {
	out, err := queryChatByID(ctx, c, id)
	if err == nil && out.Chat == nil {
		return nil, notFound("chat", id)
	}
	return out.Chat, err
}

// ChatTurns lists the prompts of a chat, the oldest first.
func (c *Client) ChatTurns(ctx context.Context, id string) ([]ChatTurn, error) {
	return collect(0, func(first *int, after string) (*queryChatTurnsChatTurnsChatTurnConnection, error) {
		out, err := queryChatTurns(ctx, c, id, first, after)
		if err == nil && out.Chat == nil {
			return &queryChatTurnsChatTurnsChatTurnConnection{}, notFound("chat", id)
		}
		if err != nil {
			return &queryChatTurnsChatTurnsChatTurnConnection{}, err
		}
		return &out.Chat.Turns, nil
	})
}

// ExportChat returns a chat as JSON.
func (c *Client) ExportChat(ctx context.Context, id string) (string, error) {
	out, err := queryExportChat(ctx, c, id)
	return out.ExportChat, err
}

// ImportChat adds a chat that ExportChat wrote.
func (c *Client) ImportChat(ctx context.Context, document string) (*Chat, error) {
	out, err := importChat(ctx, c, ImportChatInput{Document: document})
	return &out.Payload.Chat, err
}

// CreateChat creates an empty chat.
func (c *Client) CreateChat(ctx context.Context, in CreateChatInput) (*Chat, error) {
	out, err := createChat(ctx, c, in)
	return &out.Payload.Chat, err
}

// UpdateChat changes a chat.
func (c *Client) UpdateChat(ctx context.Context, in UpdateChatInput) (*Chat, error) {
	out, err := updateChat(ctx, c, in)
	return &out.Payload.Chat, err
}

// DeleteChat deletes a chat with its answers.
func (c *Client) DeleteChat(ctx context.Context, id string) error {
	_, err := deleteChat(ctx, c, DeleteChatInput{ID: id})
	return err
}

// SendChatPrompt sends a prompt to the models of a chat. Their answers come later.
func (c *Client) SendChatPrompt(ctx context.Context, in SendChatPromptInput) (*ChatTurn, error) {
	out, err := sendChatPrompt(ctx, c, in)
	return &out.Payload.Turn, err
}

// RegenerateChatAnswer asks for another answer to a prompt in one column.
func (c *Client) RegenerateChatAnswer(ctx context.Context, in RegenerateChatAnswerInput) (*ChatTurn, error) {
	out, err := regenerateChatAnswer(ctx, c, in)
	return &out.Payload.Turn, err
}

// StopChatAnswers stops answers that have not ended.
func (c *Client) StopChatAnswers(ctx context.Context, in StopChatAnswersInput) error {
	_, err := stopChatAnswers(ctx, c, in)
	return err
}

// VoteChatAnswer replaces the vote on a prompt.
func (c *Client) VoteChatAnswer(ctx context.Context, in VoteChatAnswerInput) error {
	_, err := voteChatAnswer(ctx, c, in)
	return err
}

// ReplayChat repeats the answers of a column with another model.
func (c *Client) ReplayChat(ctx context.Context, in ReplayChatInput) (*ChatReplay, error) {
	out, err := replayChat(ctx, c, in)
	return &out.Payload.Replay, err
}

// ChatEndpoints lists the endpoints of chats by name; name "" means all.
func (c *Client) ChatEndpoints(ctx context.Context, name string) ([]ChatEndpoint, error) {
	return collect(0, func(first *int, after string) (*queryChatEndpointsChatEndpointsChatEndpointConnection, error) {
		out, err := queryChatEndpoints(ctx, c, first, after, nameIs(name))
		return &out.ChatEndpoints, err
	})
}

// CreateChatEndpoint adds an endpoint of chats.
func (c *Client) CreateChatEndpoint(ctx context.Context, in CreateChatEndpointInput) (*ChatEndpoint, error) {
	out, err := createChatEndpoint(ctx, c, in)
	return &out.Payload.Endpoint, err
}

// UpdateChatEndpoint changes an endpoint of chats.
func (c *Client) UpdateChatEndpoint(ctx context.Context, in UpdateChatEndpointInput) (*ChatEndpoint, error) {
	out, err := updateChatEndpoint(ctx, c, in)
	return &out.Payload.Endpoint, err
}

// DeleteChatEndpoint deletes an endpoint of chats.
func (c *Client) DeleteChatEndpoint(ctx context.Context, id string) error {
	_, err := deleteChatEndpoint(ctx, c, DeleteChatEndpointInput{ID: id})
	return err
}
