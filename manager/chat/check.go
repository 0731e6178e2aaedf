package chat

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/berthhq/berth/internal/conversation"
	"github.com/berthhq/berth/internal/problem"
)

// checkTitle checks the title of a chat.
func checkTitle(title *string) error {
	if title == nil {
		return nil
	}
	if n := utf8.RuneCountInString(*title); n > maxTitle || !utf8.ValidString(*title) || strings.ContainsRune(*title, 0) {
		return problem.Invalid("title", "has %d characters, at most %d are allowed", n, maxTitle).WithLimit(fmt.Sprint(maxTitle))
	}
	return nil
}

// titleOf returns the first line of a prompt, as a title.
func titleOf(prompt string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(prompt), "\n")
	runes := []rune(strings.TrimSpace(line))
	return string(runes[:min(len(runes), maxTitle)])
}

// text checks a text that is stored: PostgreSQL stores no zero byte.
func text(field, value string, most int) error {
	switch {
	case len(value) > most:
		return problem.Invalid(field, "has %d bytes, at most %d are allowed", len(value), most).WithLimit(fmt.Sprint(most))
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return problem.Invalid(field, "is not text in UTF-8")
	}
	return nil
}

// parameters checks how a model is asked.
func parameters(p *conversation.Parameters) (out conversation.Parameters, err error) {
	if p == nil {
		return out, nil
	}
	for _, f := range []struct {
		name  string
		value *float64
		least float64
		most  float64
	}{
		{"temperature", p.Temperature, 0, 2}, {"topP", p.TopP, 0, 1},
		{"presencePenalty", p.PresencePenalty, -2, 2}, {"frequencyPenalty", p.FrequencyPenalty, -2, 2},
	} {
		if f.value != nil && !(*f.value >= f.least && *f.value <= f.most) {
			return out, problem.Invalid(f.name, "%g is not between %g and %g", *f.value, f.least, f.most).WithLimit(fmt.Sprintf("%g", f.most))
		}
	}
	if p.TopP != nil && *p.TopP == 0 {
		return out, problem.Invalid("topP", "is 0, it must be above 0")
	}
	if p.MaxTokens != nil && (*p.MaxTokens < 1 || *p.MaxTokens > maxTokens) {
		return out, problem.Invalid("maxTokens", "%d is not between 1 and %d", *p.MaxTokens, maxTokens).WithLimit(fmt.Sprint(maxTokens))
	}
	if err := text("system", p.System, maxSystem); err != nil {
		return out, err
	}
	if err := stops(p.Stop); err != nil {
		return out, err
	}
	return *p, schema(p.Schema)
}

func stops(list []string) error {
	if len(list) > maxStops {
		return problem.Invalid("stop", "has %d texts, at most %d are allowed", len(list), maxStops).WithLimit(fmt.Sprint(maxStops))
	}
	for _, one := range list {
		if n := utf8.RuneCountInString(one); n == 0 || n > maxStop {
			return problem.Invalid("stop", "a text has %d characters, 1 to %d are allowed", n, maxStop).WithLimit(fmt.Sprint(maxStop))
		}
		if err := text("stop", one, 4*maxStop); err != nil {
			return err
		}
	}
	return nil
}

// schema checks that a JSON schema is an object. Engines check the rest.
func schema(s string) error {
	if s == "" {
		return nil
	}
	if err := text("schema", s, maxSchema); err != nil {
		return err
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(s), &object); err != nil || object == nil {
		return problem.Invalid("schema", "is not a JSON object")
	}
	return nil
}
