package modelmock

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// maxBody limits the body of a request.
const maxBody = 16 << 20

func (e *Engine) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", e.health)
	mux.HandleFunc("GET /ping", e.health)
	mux.HandleFunc("GET /version", func(rw http.ResponseWriter, _ *http.Request) { write(rw, map[string]string{"version": "modelmock"}) })
	mux.Handle("GET /metrics", promhttp.HandlerFor(e.meter.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /v1/models", e.models)
	mux.HandleFunc("POST /v1/chat/completions", e.answered(chat))
	mux.HandleFunc("POST /v1/completions", e.answered(completion))
	mux.HandleFunc("POST /v1/embeddings", e.embeddings)
	mux.HandleFunc("POST /sleep", e.sleep(true))
	mux.HandleFunc("POST /wake_up", e.sleep(false))
	mux.HandleFunc("GET /is_sleeping", func(rw http.ResponseWriter, _ *http.Request) {
		write(rw, map[string]bool{"is_sleeping": e.asleep.Load()})
	})
	mux.HandleFunc("PUT /mock/fault", e.putFault)
	return mux
}

func (e *Engine) health(rw http.ResponseWriter, _ *http.Request) {
	switch {
	case time.Now().Before(e.ready):
		fail(rw, http.StatusServiceUnavailable, "the model is being loaded")
	case e.faults.unhealthy():
		fail(rw, http.StatusInternalServerError, "fault on request")
	default:
		rw.WriteHeader(http.StatusOK)
	}
}

// sleep frees the KV cache, as level 1 of vLLM's sleep mode does, or wakes the engine.
func (e *Engine) sleep(asleep bool) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		e.asleep.Store(asleep)
		if asleep {
			e.cache.clear()
		}
		rw.WriteHeader(http.StatusOK)
	}
}

func (e *Engine) models(rw http.ResponseWriter, _ *http.Request) {
	write(rw, map[string]any{"object": "list", "data": []any{map[string]any{
		"id": e.cfg.Model, "object": "model", "created": 0, "owned_by": "modelmock", "max_model_len": e.cfg.MaxModelLen,
	}}})
}

// refuse answers a request that cannot be answered now, and reports whether it did.
func (e *Engine) refuse(rw http.ResponseWriter, model string) bool {
	switch {
	case time.Now().Before(e.ready) || e.asleep.Load():
		fail(rw, http.StatusServiceUnavailable, "the engine is not ready")
	case model != e.cfg.Model:
		fail(rw, http.StatusNotFound, fmt.Sprintf("the model %q does not exist", model))
	default:
		return false
	}
	return true
}

func (e *Engine) embeddings(rw http.ResponseWriter, r *http.Request) {
	var in struct {
		Model      string          `json:"model"`
		Input      json.RawMessage `json:"input"`
		Dimensions int             `json:"dimensions"`
		Encoding   string          `json:"encoding_format"`
	}
	if !read(rw, r, &in) || e.faults.take().spoil(rw, r) || e.refuse(rw, in.Model) {
		return
	}
	var texts []string
	if json.Unmarshal(in.Input, &texts) != nil {
		var one string
		if json.Unmarshal(in.Input, &one) != nil {
			fail(rw, http.StatusBadRequest, "input must be a string or a list of strings")
			return
		}
		texts = []string{one}
	}
	if in.Dimensions <= 0 {
		in.Dimensions = 8
	}
	tokens, data := 0, make([]any, len(texts))
	for i, text := range texts {
		tokens += len(strings.Fields(text))
		data[i] = map[string]any{"object": "embedding", "index": i, "embedding": encoded(embed(text, in.Dimensions), in.Encoding)}
	}
	e.meter.prompt.Add(float64(tokens))
	write(rw, map[string]any{
		"object": "list", "model": in.Model, "data": data,
		"usage": map[string]int{"prompt_tokens": tokens, "total_tokens": tokens},
	})
}

// embed returns a vector that depends on the text alone.
func embed(text string, dimensions int) []float64 {
	out := make([]float64, dimensions)
	for i := range out {
		h := fnv.New32a()
		fmt.Fprint(h, i, text)
		out[i] = float64(h.Sum32())/(1<<31) - 1
	}
	return out
}

// encoded returns a vector as numbers, or as the base64 of 32-bit numbers, which OpenAI's clients ask for.
func encoded(vector []float64, encoding string) any {
	if encoding != "base64" {
		return vector
	}
	var raw []byte
	for _, x := range vector {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(x)))
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// reply returns the tokens of an answer: the words of the prompt's last text, repeated.
func reply(words []string, limit int) []string {
	if len(words) == 0 {
		words = []string{"nothing"}
	}
	all := slices.Repeat(words, limit/len(words)+1)[:limit]
	out := make([]string, limit)
	for i, word := range all {
		out[i] = word
		if i > 0 {
			out[i] = " " + word
		}
	}
	return out
}

func read(rw http.ResponseWriter, r *http.Request, in any) bool {
	if err := json.NewDecoder(http.MaxBytesReader(rw, r.Body, maxBody)).Decode(in); err != nil {
		fail(rw, http.StatusBadRequest, "body: "+err.Error())
		return false
	}
	return true
}

func write(rw http.ResponseWriter, out any) {
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(out)
}

func fail(rw http.ResponseWriter, status int, message string) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	_ = json.NewEncoder(rw).Encode(map[string]any{"error": map[string]any{"message": message, "type": "mock_error", "code": status}})
}
