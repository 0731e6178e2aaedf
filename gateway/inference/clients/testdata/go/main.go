// Command go asks the router with OpenAI's client in Go and prints what it got as JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"os"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"
)

type object = map[string]any

var (
	ctx    = context.Background()
	model  = os.Getenv("MODEL")
	client = openai.NewClient(option.WithMaxRetries(0))
	words  = []openai.ChatCompletionMessageParamUnion{openai.UserMessage("one two three")}

	weather = openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
		Name: "weather",
		Parameters: shared.FunctionParameters{
			"type":       "object",
			"properties": object{"city": object{"type": "string"}, "days": object{"type": "integer", "minimum": 2}},
			"required":   []string{"city", "days"},
		},
	})
	schema = object{
		"type":       "object",
		"properties": object{"word": object{"type": "string"}, "right": object{"type": "boolean"}},
		"required":   []string{"word", "right"},
	}
)

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func request() openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: model, Messages: words}
}

func ask(p openai.ChatCompletionNewParams, options ...option.RequestOption) openai.ChatCompletion {
	return *must(client.Chat.Completions.New(ctx, p, options...))
}

func counts(u openai.CompletionUsage) any {
	if u.TotalTokens == 0 {
		return nil
	}
	return []int64{u.PromptTokens, u.CompletionTokens}
}

func models() (out []string) {
	for list := client.Models.ListAutoPaging(ctx); list.Next(); {
		out = append(out, list.Current().ID)
	}
	return out
}

func chat() object {
	p := request()
	p.MaxTokens = openai.Int(4)
	got := ask(p)
	return object{"text": got.Choices[0].Message.Content, "usage": counts(got.Usage), "reason": got.Choices[0].FinishReason}
}

func completion() string {
	got := must(client.Completions.New(ctx, openai.CompletionNewParams{
		Model: openai.CompletionNewParamsModel(model), MaxTokens: openai.Int(3),
		Prompt: openai.CompletionNewParamsPromptUnion{OfString: openai.String("one two")},
	}))
	return got.Choices[0].Text
}

// joined returns the answer that the parts of a stream make.
func joined(p openai.ChatCompletionNewParams) (all openai.ChatCompletionAccumulator, parts int) {
	stream := client.Chat.Completions.NewStreaming(ctx, p)
	defer stream.Close()
	for stream.Next() {
		all.AddChunk(stream.Current())
		parts++
	}
	if err := stream.Err(); err != nil {
		log.Fatal(err)
	}
	return all, parts
}

func stream(usage bool) object {
	p := request()
	p.MaxTokens = openai.Int(5)
	if usage {
		p.StreamOptions.IncludeUsage = openai.Bool(true)
	}
	all, parts := joined(p)
	return object{"text": all.Choices[0].Message.Content, "usage": counts(all.Usage), "parts": parts > 4}
}

func call(choice openai.ChatCompletionChoice) object {
	made := choice.Message.ToolCalls[0].Function
	return object{"name": made.Name, "arguments": json.RawMessage(made.Arguments), "reason": choice.FinishReason}
}

func tool() object {
	p := request()
	p.Tools = []openai.ChatCompletionToolUnionParam{weather}
	p.ToolChoice.OfFunctionToolChoice = &openai.ChatCompletionNamedToolChoiceParam{
		Function: openai.ChatCompletionNamedToolChoiceFunctionParam{Name: "weather"},
	}
	return call(ask(p).Choices[0])
}

func toolStream() object {
	p := request()
	p.Tools = []openai.ChatCompletionToolUnionParam{weather}
	p.ToolChoice.OfAuto = openai.String("required")
	all, _ := joined(p)
	return call(all.Choices[0])
}

func answerOfTool() string {
	p := request()
	p.Tools = []openai.ChatCompletionToolUnionParam{weather}
	p.MaxTokens = openai.Int(2)
	called := openai.ChatCompletionMessageParamUnion{OfAssistant: &openai.ChatCompletionAssistantMessageParam{
		ToolCalls: []openai.ChatCompletionMessageToolCallUnionParam{{OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
			ID: "c", Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: "weather", Arguments: "{}"},
		}}},
	}}
	p.Messages = append([]openai.ChatCompletionMessageParamUnion{}, words[0], called, openai.ToolMessage("sunny day", "c"))
	return ask(p).Choices[0].Message.Content
}

func form(format openai.ChatCompletionNewParamsResponseFormatUnion) json.RawMessage {
	p := request()
	p.ResponseFormat = format
	return json.RawMessage(ask(p).Choices[0].Message.Content)
}

func embeddings() object {
	got := must(client.Embeddings.New(ctx, openai.EmbeddingNewParams{
		Model: model, Dimensions: openai.Int(4),
		Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"a", "b"}},
	}))
	var lengths []int
	numbers := true
	for _, e := range got.Data {
		lengths = append(lengths, len(e.Embedding))
		for _, x := range e.Embedding {
			numbers = numbers && -1 <= x && x < 1
		}
	}
	return object{"lengths": lengths, "numbers": numbers}
}

// leave takes the first part of a stream and leaves.
func leave() bool {
	p := request()
	p.MaxTokens = openai.Int(20000)
	stream := client.Chat.Completions.NewStreaming(ctx, p)
	defer stream.Close()
	return stream.Next()
}

func failure(model string, options ...option.RequestOption) object {
	p := request()
	p.Model = model
	_, err := client.Chat.Completions.New(ctx, p, options...)
	var e *openai.Error
	if !errors.As(err, &e) {
		log.Fatalf("the error is %v", err)
	}
	out := object{"type": "Error", "status": e.StatusCode, "code": e.Code, "after": nil}
	if after := e.Response.Header.Get("Retry-After"); after != "" {
		out["after"] = after
	}
	return out
}

func afterLimit() string {
	p := request()
	p.MaxTokens = openai.Int(1)
	return ask(p, option.WithAPIKey("limited-once"), option.WithMaxRetries(2)).Choices[0].Message.Content
}

func main() {
	retry := option.WithMaxRetries(2)
	out := object{
		"models": models(), "chat": chat(), "completion": completion(),
		"stream": stream(false), "streamWithUsage": stream(true),
		"tool": tool(), "toolStream": toolStream(), "answerOfTool": answerOfTool(),
		"object": form(openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONObject: &shared.ResponseFormatJSONObjectParam{}}),
		"schema": form(openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "answer", Strict: openai.Bool(true), Schema: schema},
		}}),
		"embeddings": embeddings(), "left": leave(),
		"wrongKey": failure(model, option.WithAPIKey("wrong")), "unknownModel": failure("other"),
		"limit": failure(model, option.WithAPIKey("limited")), "budget": failure(model, option.WithAPIKey("spent"), retry),
		"afterLimit": afterLimit(), "badRequest": failure(""),
	}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		log.Fatal(err)
	}
}
