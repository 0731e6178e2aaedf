// Package modelapi names the groups of APIs of models, which keys can be restricted to.
package modelapi

import "slices"

// API is a group of APIs that do the same kind of work.
type API string

// The groups.
const (
	Chat        API = "chat"        // conversations, also those of other vendors' APIs
	Completions API = "completions" // texts that continue a prompt
	Embeddings  API = "embeddings"
	Rerank      API = "rerank" // also scores
	Audio       API = "audio"
	Images      API = "images"
	Other       API = "other" // moderations, and whatever else an engine serves
)

// All returns the groups.
func All() []API { return []API{Chat, Completions, Embeddings, Rerank, Audio, Images, Other} }

// Allows reports whether a key with the stored names of groups may use a group. No name stands for all groups.
func Allows(names []string, a API) bool { return len(names) == 0 || slices.Contains(names, string(a)) }
