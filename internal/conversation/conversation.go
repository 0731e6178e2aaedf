// Package conversation defines the parts of a chat with models that are stored as JSON: columns, models, parameters,
// attachments and metrics.
package conversation

import "github.com/google/uuid"

// Column is a model of a chat, and how it is asked.
type Column struct {
	Number     int        `json:"number"`
	Model      Model      `json:"model"`
	Parameters Parameters `json:"parameters"`
}

// Model is a deployment, or a model of an endpoint outside the cluster. One without both was imported, and cannot be asked.
type Model struct {
	Name         string     `json:"name"`
	DeploymentID *uuid.UUID `json:"deployment,omitempty"`
	Revision     *int       `json:"revision,omitempty"` // the only one that is asked
	EndpointID   *uuid.UUID `json:"endpoint,omitempty"`
}

// Parameters say how a model is asked. Nil is the engine's default.
type Parameters struct {
	System           string   `json:"system,omitempty"`
	Temperature      *float64 `json:"temperature,omitempty"`
	TopP             *float64 `json:"topP,omitempty"`
	MaxTokens        *int     `json:"maxTokens,omitempty"`
	PresencePenalty  *float64 `json:"presencePenalty,omitempty"`
	FrequencyPenalty *float64 `json:"frequencyPenalty,omitempty"`
	Seed             *int     `json:"seed,omitempty"`
	Stop             []string `json:"stop,omitempty"`
	Schema           string   `json:"schema,omitempty"` // JSON schema of the answer
}

// Asked is what one answer was asked with.
type Asked struct {
	Model      Model      `json:"model"`
	Parameters Parameters `json:"parameters"`
	// CommonSystem reports whether all columns have the same instruction, so that it says nothing about the model.
	CommonSystem bool `json:"commonSystem,omitempty"`
}

// Shown returns the parameters that a viewer can see of an answer whose model is hidden or not.
func (a Asked) Shown(hidden bool) Parameters {
	switch {
	case !hidden:
		return a.Parameters
	case a.CommonSystem:
		return Parameters{System: a.Parameters.System}
	}
	return Parameters{}
}

// Attachment is a file of a prompt. Its content is stored after those of the attachments before it.
type Attachment struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Size int    `json:"size"` // bytes
}

// Text is the type of attachments that are a part of the prompt.
const Text = "text/plain"

// Metrics are what a gateway measured of an answer, in milliseconds and tokens.
type Metrics struct {
	FirstToken       *float64 `json:"firstToken,omitempty"`
	Duration         *float64 `json:"duration,omitempty"`
	Waited           *float64 `json:"waited,omitempty"`
	PromptTokens     *int     `json:"promptTokens,omitempty"`
	CompletionTokens *int     `json:"completionTokens,omitempty"`
	CachedTokens     *int     `json:"cachedTokens,omitempty"`
	TokensPerSecond  *float64 `json:"tokensPerSecond,omitempty"`
}
