package driver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// checker is implemented by an options struct with rules between its fields. The error must name
// the option.
type checker interface{ Check() error }

// Decode decodes options_json into a struct that contains the defaults, by the tags that Schema
// documents. Its error is INVALID_ARGUMENT and names the option.
func Decode(text string, into any) error {
	if err := decode(text, reflect.ValueOf(into).Elem()); err != nil {
		return status.Errorf(codes.InvalidArgument, "options: %v", err)
	}
	if c, ok := into.(checker); ok {
		if err := c.Check(); err != nil {
			return status.Errorf(codes.InvalidArgument, "options: %v", err)
		}
	}
	return nil
}

func decode(text string, into reflect.Value) error {
	options := describe(into.Type())
	given, err := fields(text)
	if err != nil {
		return err
	}
	for name := range given {
		if !slices.ContainsFunc(options, func(o option) bool { return o.name == name }) {
			return fmt.Errorf("%s: this option does not exist", shown(name))
		}
	}
	for _, o := range options {
		raw, ok := given[o.name]
		if !ok && o.required {
			return fmt.Errorf("%s: is required", o.name)
		}
		if !ok {
			continue
		}
		if err := o.set(raw, into.FieldByIndex(o.index)); err != nil {
			return fmt.Errorf("%s: %w", o.name, err)
		}
	}
	return nil
}

// fields returns the members of a JSON object. It returns an error for duplicate names.
func fields(text string) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	if strings.TrimSpace(text) == "" {
		return out, nil
	}
	dec := json.NewDecoder(strings.NewReader(text))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := t.(string)
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, fmt.Errorf("%s: %w", shown(name), err)
		}
		if out[name] != nil {
			return nil, fmt.Errorf("%s: is given twice", shown(name))
		}
		out[name] = raw
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text after the object")
	}
	return out, nil
}

// set decodes one value. The error does not contain the value, because it is a secret if someone
// confuses password with password_file.
func (o option) set(raw json.RawMessage, v reflect.Value) error {
	wrong := fmt.Errorf("want %s", o.wants())
	if string(raw) == "null" {
		return wrong
	}
	var text string
	switch {
	case o.kind == durationType:
		if json.Unmarshal(raw, &text) != nil {
			return wrong
		}
		d, err := time.ParseDuration(text)
		if err != nil {
			return wrong
		}
		v.SetInt(int64(d))
		return o.within(d.Seconds(), " seconds")
	case o.kind.Kind() == reflect.String:
		if json.Unmarshal(raw, &text) != nil {
			return wrong
		}
		v.SetString(text)
		return o.text(text)
	case o.kind == textsType:
		texts := []string{}
		if json.Unmarshal(raw, &texts) != nil {
			return wrong
		}
		v.Set(reflect.ValueOf(texts))
		if len(texts) > maxItems {
			return fmt.Errorf("%d items, at most %d are allowed", len(texts), maxItems)
		}
		for i, text := range texts {
			if err := o.text(text); err != nil {
				return fmt.Errorf("[%d]: %w", i, err)
			}
		}
		return nil
	}
	if json.Unmarshal(raw, v.Addr().Interface()) != nil {
		return wrong
	}
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		return o.within(float64(v.Int()), "")
	case reflect.Float64:
		return o.within(v.Float(), "")
	}
	return nil
}

func (o option) within(n float64, unit string) error {
	if o.min != nil && n < *o.min {
		return fmt.Errorf("%v%s is below %v", n, unit, *o.min)
	}
	if o.max != nil && n > *o.max {
		return fmt.Errorf("%v%s is above %v", n, unit, *o.max)
	}
	return nil
}

func (o option) text(text string) error {
	switch {
	case len(text) > maxText:
		return fmt.Errorf("%d bytes, at most %d are allowed", len(text), maxText)
	case strings.ContainsRune(text, 0):
		return errors.New("has a zero byte")
	case text == "" && o.required:
		return errors.New("is empty")
	case o.enum != nil && !slices.Contains(o.enum, text):
		return fmt.Errorf("must be one of %s", strings.Join(o.enum, ", "))
	case o.pattern != nil && !o.pattern.MatchString(text):
		return fmt.Errorf("does not match %s", o.pattern)
	case o.kind == secretType && text != "":
		if !filepath.IsAbs(text) {
			return errors.New("must be the absolute path of a file")
		}
		_, err := Secret(text).Read()
		return err
	}
	return nil
}

func (o option) wants() string {
	switch {
	case o.kind == durationType:
		return `a duration such as "30s"`
	case o.kind == secretType:
		return "the path of a file with the secret"
	}
	return map[string]string{"string": "a string", "boolean": "true or false", "integer": "a whole number",
		"number": "a number", "array": "a list of strings"}[jsonType(o.kind)]
}

// shown shortens a name from the input for an error.
func shown(name string) string {
	if len(name) > 64 {
		name = name[:64] + "…"
	}
	return strings.ToValidUTF8(name, "?")
}
