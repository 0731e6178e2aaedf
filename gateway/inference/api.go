package inference

import "github.com/berthhq/berth/internal/modelapi"

// api is an address that engines serve for models.
type api struct {
	path string
	// group is the group of APIs that a key must allow.
	group modelapi.API
	// asksForUsage says that a stream has its usage only if the request asks for it.
	asksForUsage bool
	// lines says that a stream is one JSON object in each line, and not server-sent events.
	lines bool
	// form says that a request is a form with a file, and not JSON.
	form bool
	// binary says that an answer is a file, which is passed on as it comes.
	binary bool
}

// apis are the addresses that a router serves: those of OpenAI, Anthropic's messages and Ollama's. Others, such
// as those that administer an engine, are not reachable through a router. Each has also an address below
// /deployments/NAME, where the path names the model.
var apis = []api{
	{path: "/v1/chat/completions", group: modelapi.Chat, asksForUsage: true},
	{path: "/v1/completions", group: modelapi.Completions, asksForUsage: true},
	{path: "/v1/embeddings", group: modelapi.Embeddings},
	{path: "/v1/rerank", group: modelapi.Rerank},
	{path: "/v1/score", group: modelapi.Rerank},
	{path: "/v1/moderations", group: modelapi.Other},
	{path: "/v1/images/generations", group: modelapi.Images},
	{path: "/v1/audio/speech", group: modelapi.Audio, binary: true},
	{path: "/v1/audio/transcriptions", group: modelapi.Audio, form: true},
	{path: "/v1/audio/translations", group: modelapi.Audio, form: true},
	{path: "/v1/responses", group: modelapi.Chat},
	{path: "/v1/messages", group: modelapi.Chat},
	{path: "/api/chat", group: modelapi.Chat, lines: true},
	{path: "/api/generate", group: modelapi.Completions, lines: true},
	{path: "/api/embed", group: modelapi.Embeddings, lines: true},
}
