// Package modelmock is an inference engine without a model, for tests and load tests of serving:
// the API of OpenAI, streams, metrics with the names of vLLM, rates of prefill and decode, a prefix
// cache in blocks, sleep and wake, and faults on request. It answers with the words of the prompt.
//
// The model of time: requests beyond MaxRunning wait in a queue. Prefill is one resource of the
// engine, so prompts are prefilled one after another, each for its tokens that the cache lacks.
// Each running sequence is then decoded at its own constant rate.
package modelmock
