// Package inference routes requests of the APIs of OpenAI, Anthropic and Ollama to the replicas of a model: it reads the model's
// name, chooses a replica, forwards the request, retries it at another replica while the client has seen
// nothing, and counts tokens.
//
// A request names a model and nothing else that decides where it goes: addresses, headers and keys in
// the body are only data for the engine.
package inference
