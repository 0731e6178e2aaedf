package inference

// api is an address that engines serve for models.
type api struct {
	path string
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
	{path: "/v1/chat/completions", asksForUsage: true},
	{path: "/v1/completions", asksForUsage: true},
	{path: "/v1/embeddings"},
	{path: "/v1/rerank"},
	{path: "/v1/score"},
	{path: "/v1/moderations"},
	{path: "/v1/images/generations"},
	{path: "/v1/audio/speech", binary: true},
	{path: "/v1/audio/transcriptions", form: true},
	{path: "/v1/audio/translations", form: true},
	{path: "/v1/responses"},
	{path: "/v1/messages"},
	{path: "/api/chat", lines: true},
	{path: "/api/generate", lines: true},
	{path: "/api/embed", lines: true},
}
