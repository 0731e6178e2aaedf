package inference

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/containerd/errdefs"
)

const (
	// MaxBody limits the body of a request, in bytes. Images are sent in it.
	MaxBody = 32 << 20
	// maxDepth limits how deep the values of a body are nested.
	maxDepth = 64
)

// body is a request's body, and what the router needs of it.
type body struct {
	bytes  []byte
	kind   string // the media type
	model  string
	stream bool
	// askedUsage says that the client asks for the usage of a stream.
	askedUsage bool
	addedUsage bool
	session    string // its name in the body; "" = none
	prefix     []byte // the part of the body that decides what the engine has in its cache
}

// readBody reads the body of a request to an API. The name is that of the model in the address, "" if it has none.
// The engine and the router must read the same model, so a key that occurs twice is refused, and a body that is
// not strictly JSON.
func readBody(from io.Reader, size int64, a api, name string) (*body, error) {
	raw, err := readAll(from, size)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(raw) {
		return nil, invalid("the body is not UTF-8")
	}
	b := &body{bytes: raw, kind: "application/json"}
	fields, err := members(raw)
	if err != nil {
		return nil, err
	}
	if err := b.read(fields); err != nil {
		return nil, err
	}
	_, named := fields["model"]
	if b.model, err = modelOf(b.model, named, name); err != nil {
		return nil, err
	}
	if !named {
		text, _ := json.Marshal(name)
		b.add("model", string(text), len(fields) == 0)
	}
	if a.asksForUsage && b.stream && !b.askedUsage {
		b.askForUsage(fields)
		b.addedUsage = true
	}
	return b, nil
}

func readAll(from io.Reader, size int64) ([]byte, error) {
	if size > MaxBody {
		return nil, errTooLarge
	}
	raw, err := io.ReadAll(io.LimitReader(from, MaxBody+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the body: %w", err)
	case len(raw) > MaxBody:
		return nil, errTooLarge
	}
	return raw, nil
}

// modelOf returns the model of a request, from its body and its address.
func modelOf(body string, named bool, address string) (string, error) {
	switch {
	case !utf8.ValidString(address):
		return "", invalid("the name in the address is not UTF-8")
	case named && body == "":
		return "", invalid("model is empty")
	case address == "" && !named:
		return "", invalid("model is missing")
	case address == "" || body == address:
		return body, nil
	case named:
		return "", invalid("model is %q, but the address is that of %q", body, address)
	}
	return address, nil
}

// member is a member of the body's object: the place of its value in the bytes.
type member struct{ from, to int }

// members returns the members of the object that a body is.
func members(raw []byte) (map[string]member, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, invalid("the body is not a JSON object")
	}
	out := map[string]member{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, invalid("the body is not JSON: %v", err)
		}
		name := key.(string)
		if _, twice := out[name]; twice {
			return nil, invalid("the body has %q twice", name)
		}
		for _, own := range []string{"model", "stream", "stream_options"} {
			if name != own && strings.EqualFold(name, own) { // engines in Go read it as the field
				return nil, invalid("the body has %q instead of %q", name, own)
			}
		}
		from := int(d.InputOffset())
		if err := skip(d); err != nil {
			return nil, err
		}
		at := member{from, int(d.InputOffset())}
		at.from += bytes.IndexByte(raw[from:], ':') + 1
		out[name] = at
	}
	if _, err := d.Token(); err != nil {
		return nil, invalid("the body is not JSON: %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, invalid("the body has something after its object")
	}
	return out, nil
}

// skip reads a value. Keys that occur twice in its objects are refused too.
func skip(d *json.Decoder) error {
	type object struct {
		seen map[string]bool // nil: an array
		key  bool            // the next token is a key
	}
	var open []object
	for {
		t, err := d.Token()
		if err != nil {
			return invalid("the body is not JSON: %v", err)
		}
		last := len(open) - 1
		if last >= 0 && open[last].key && t != json.Delim('}') {
			name := t.(string)
			if open[last].seen[name] {
				return invalid("the body has %q twice in an object", name)
			}
			open[last].seen[name], open[last].key = true, false
			continue
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			if len(open) == maxDepth {
				return invalid("the body is nested deeper than %d levels", maxDepth)
			}
			o := object{}
			if t == json.Delim('{') {
				o = object{seen: map[string]bool{}, key: true}
			}
			open = append(open, o)
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:last]
		}
		if len(open) == 0 {
			return nil
		}
		open[len(open)-1].key = open[len(open)-1].seen != nil
	}
}

// read takes the fields that the router needs.
func (b *body) read(fields map[string]member) error {
	var options struct {
		Include bool `json:"include_usage"`
	}
	for name, into := range map[string]any{"model": &b.model, "stream": &b.stream, "stream_options": &options} {
		at, is := fields[name]
		if !is {
			continue
		}
		if err := json.Unmarshal(b.bytes[at.from:at.to], into); err != nil {
			return invalid("%s has a wrong type", name)
		}
	}
	b.askedUsage = options.Include
	for _, name := range []string{"user", "prompt_cache_key"} {
		if at, is := fields[name]; is && at.to-at.from <= maxAffinity {
			if text := bytes.TrimSpace(b.bytes[at.from:at.to]); len(text) > 2 && text[0] == '"' {
				b.session = string(text)
			}
		}
	}
	for _, name := range []string{"messages", "prompt", "input"} {
		if at, is := fields[name]; is {
			b.prefix = b.bytes[at.from:at.to]
		}
	}
	return nil
}

// askForUsage makes the engine report the usage of a stream, without a change of any other byte. A
// client cannot avoid this by its own options.
func (b *body) askForUsage(fields map[string]member) {
	const usage = `"include_usage":true`
	at, is := fields["stream_options"]
	if !is {
		b.add("stream_options", `{`+usage+`}`, false)
		return
	}
	if bytes.Equal(bytes.TrimSpace(b.bytes[at.from:at.to]), []byte("null")) {
		b.replace(at, `{`+usage+`}`)
		return
	}
	var options map[string]json.RawMessage
	_ = json.Unmarshal(b.bytes[at.from:at.to], &options) // read has decoded it
	options["include_usage"] = json.RawMessage("true")
	text, _ := json.Marshal(options)
	b.replace(at, string(text))
}

// add adds a member at the end of the object. The places of the other members stay the same.
func (b *body) add(name, value string, only bool) {
	end := bytes.LastIndexByte(b.bytes, '}')
	text := `"` + name + `":` + value
	if !only {
		text = "," + text
	}
	b.replace(member{end, end}, text)
}

// replace puts a text at a place.
func (b *body) replace(at member, text string) {
	out := make([]byte, 0, len(b.bytes)+len(text))
	out = append(append(out, b.bytes[:at.from]...), text...)
	b.bytes = append(out, b.bytes[at.to:]...)
}

func invalid(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, errdefs.ErrInvalidArgument)...)
}

var errTooLarge = fmt.Errorf("the body has more than %d MiB", MaxBody>>20)
