package inference

import "strings"

// maxContent limits what is kept of a request, and of its answer, in bytes.
const maxContent = 64 << 10

// Content is a request and its answer as texts, for deployments that record them.
type Content struct {
	Path            string // of the API
	Request, Answer string // empty for a form or a file
	Truncated       bool   // the request or the answer is longer
}

// content collects a Content. It is nil for requests that are not recorded.
type content struct {
	path            string
	request, answer []byte
	truncated, file bool
}

func newContent(a api, b *body) *content {
	c := &content{path: a.path}
	if !a.form {
		c.request = c.first(nil, b.bytes)
	}
	return c
}

// first appends the bytes for which there is room.
func (c *content) first(to, part []byte) []byte {
	if room := maxContent - len(to); len(part) > room {
		part, c.truncated = part[:room], true
	}
	return append(to, part...)
}

// add adds a part of the answer.
func (c *content) add(part []byte) {
	if c != nil && !c.file {
		c.answer = c.first(c.answer, part)
	}
}

// isFile says that the answer is not a text.
func (c *content) isFile() {
	if c != nil {
		c.file = true
	}
}

// text is what was collected, as texts that a database can store.
func (c *content) text() Content {
	clean := func(b []byte) string {
		return strings.ReplaceAll(strings.ToValidUTF8(string(b), "\uFFFD"), "\x00", "\uFFFD")
	}
	return Content{Path: c.path, Request: clean(c.request), Answer: clean(c.answer), Truncated: c.truncated}
}
