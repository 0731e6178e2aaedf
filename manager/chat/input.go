package chat

import (
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/conversation"
)

// ChatModelInput is either a deployment or a model of an endpoint.
type ChatModelInput struct {
	Deployment *uuid.UUID
	Revision   *int
	Endpoint   *uuid.UUID
	Name       *string
}

// ChatColumnInput is a column of a chat. A number keeps an existing one.
type ChatColumnInput struct {
	Number     *int
	Model      ChatModelInput
	Parameters *conversation.Parameters
}

// CreateChatInput describes a new chat.
type CreateChatInput struct {
	Title   *string
	Columns []ChatColumnInput
	Blind   *bool
}

// UpdateChatInput changes the fields that are set.
type UpdateChatInput struct {
	ID      uuid.UUID
	Title   *string
	Columns []ChatColumnInput
	Shared  *bool
}

// DeleteChatInput names one.
type DeleteChatInput struct{ ID uuid.UUID }

// ChatAttachmentInput is a file of a prompt.
type ChatAttachmentInput struct{ Name, Type, Data string }

// ChatContinuationInput says with which answer a column continues.
type ChatContinuationInput struct {
	Column int
	Answer uuid.UUID
}

// SendChatPromptInput is a prompt.
type SendChatPromptInput struct {
	Chat        uuid.UUID
	Previous    *uuid.UUID
	Prompt      string
	Attachments []ChatAttachmentInput
	After       []ChatContinuationInput
	Columns     []int
}

// RegenerateChatAnswerInput asks for another answer.
type RegenerateChatAnswerInput struct {
	Turn   uuid.UUID
	Column int
}

// StopChatAnswersInput names answers; none: all of the chat.
type StopChatAnswersInput struct {
	Chat    uuid.UUID
	Answers []uuid.UUID
}

// VoteChatAnswerInput is a vote.
type VoteChatAnswerInput struct {
	Turn    uuid.UUID
	Answers []uuid.UUID
	Winner  *uuid.UUID
}

// ReplayChatInput asks to repeat the answers of a column.
type ReplayChatInput struct {
	Chat       uuid.UUID
	Turn       *uuid.UUID
	Column     int
	Model      ChatModelInput
	Parameters *conversation.Parameters
}

// ImportChatInput is a document in the form of Export.
type ImportChatInput struct{ Document string }

// CreateChatEndpointInput describes a new endpoint.
type CreateChatEndpointInput struct {
	Name    string
	URL     string
	Key     *string
	Models  []string
	Domains []uuid.UUID
}

// UpdateChatEndpointInput changes the fields that are set.
type UpdateChatEndpointInput struct {
	ID      uuid.UUID
	Name    *string
	URL     *string
	Key     *string
	Models  []string
	Domains []uuid.UUID
	Enabled *bool
}

// DeleteChatEndpointInput names one.
type DeleteChatEndpointInput struct{ ID uuid.UUID }

// Payloads of the mutations.
type (
	ChatPayload               struct{ Chat *ent.Chat }
	ChatTurnPayload           struct{ Turn *ent.ChatTurn }
	ChatReplayPayload         struct{ Replay *ent.ChatReplay }
	ChatEndpointPayload       struct{ Endpoint *ent.ChatEndpoint }
	DeleteChatPayload         struct{ ID uuid.UUID }
	DeleteChatEndpointPayload struct{ ID uuid.UUID }
)

// Column is a column as a viewer can see it.
type Column struct {
	Number     int
	Model      *conversation.Model // nil: hidden
	Parameters conversation.Parameters
}

// Attachment is a file of a prompt. From is where its content begins in that of the prompt.
type Attachment struct {
	conversation.Attachment
	Turn uuid.UUID
	From int
}

// Comparison is an answer and its repetition.
type Comparison struct {
	Prompt             string
	Original, Repeated *ent.ChatAnswer
	Equal              *bool
	Similarity         *float64
}

// Tally is the votes about a revision of a deployment, or a model of an endpoint.
type Tally struct {
	Model              conversation.Model
	Revision           *int
	Wins, Losses, Ties int
}

// Delta is more of an answer. Places are in UTF-16 code units.
type Delta struct {
	Answer      uuid.UUID
	TextAt      int
	Text        string
	ReasoningAt int
	Reasoning   string
}

// Update is a change of a chat that is shown. One field is set.
type Update struct {
	Chat   *ent.Chat
	Answer *ent.ChatAnswer
	Delta  *Delta
}
