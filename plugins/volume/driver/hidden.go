package driver

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

const (
	// minHidden is what is too short to be looked for in a text.
	minHidden = 4
	// maxHidden are kept, and the first of them always: those are passwords, and later
	// ones tokens, of which old ones are worth nothing.
	maxHidden   = 64
	firstHidden = 8
)

// Hidden keeps texts, what someone proves themselves with, out of what people are shown: a
// product may repeat in an error what it was sent. The zero value is ready.
type Hidden struct {
	mu    sync.Mutex
	came  []string // in this order
	texts []string // the longest first, as one may begin with another
}

// Add keeps texts out of everything from now on, also as they are in
// an address or within JSON.
func (h *Hidden) Add(texts ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := true // as they mostly are: this is called for every request
	for _, t := range texts {
		safe, _ := json.Marshal(t) // a string always can be
		quoted := strconv.Quote(t)
		for _, form := range []string{t, url.QueryEscape(t), quoted[1 : len(quoted)-1], string(safe[1 : len(safe)-1])} {
			if len(form) < minHidden || slices.Contains(h.came, form) {
				continue
			}
			known = false
			if h.came = append(h.came, form); len(h.came) > maxHidden {
				h.came = slices.Delete(h.came, firstHidden, firstHidden+1)
			}
		}
	}
	if known {
		return
	}
	h.texts = slices.SortedFunc(slices.Values(h.came), func(a, b string) int { return cmp.Compare(len(b), len(a)) })
}

// Redact takes what is hidden out of a text.
func (h *Hidden) Redact(text string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.texts {
		text = strings.ReplaceAll(text, t, "***")
	}
	return text
}
