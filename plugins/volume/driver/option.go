package driver

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	maxText  = 4096
	maxItems = 256
)

// option is one field of an options struct.
type option struct {
	name     string
	index    []int // of the field
	kind     reflect.Type
	about    string
	required bool
	min, max *float64
	enum     []string
	pattern  *regexp.Regexp
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	secretType   = reflect.TypeFor[Secret]()
	textsType    = reflect.TypeFor[[]string]()
)

// describe returns the options of a struct, including those of embedded structs. A field is an
// option if it has a json tag:
//
//	URL    string        `json:"url" required:"true" pattern:"^https://" about:"the array's address"`
//	Age    time.Duration `json:"usage_max_age" min:"0" max:"86400" about:"…"` // "30s"; bounds in seconds
//	Mode   string        `json:"mode" enum:"fast,safe" about:"…"`
//	Admin  driver.Secret `json:"password_file" about:"…"`
//
// The supported types are string, bool, int, int64, float64, []string, time.Duration and Secret.
// describe panics if the struct is not valid.
func describe(t reflect.Type) []option {
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("options: %v is not a struct", t))
	}
	var out []option
	for _, f := range reflect.VisibleFields(t) {
		name := f.Tag.Get("json")
		if f.Anonymous || name == "" {
			continue
		}
		o := option{name: name, index: f.Index, kind: f.Type, about: f.Tag.Get("about"), required: f.Tag.Get("required") == "true"}
		o.min, o.max = bound(f, "min"), bound(f, "max")
		if v := f.Tag.Get("enum"); v != "" {
			o.enum = strings.Split(v, ",")
		}
		if v := f.Tag.Get("pattern"); v != "" {
			o.pattern = regexp.MustCompile(v)
		}
		switch {
		case !f.IsExported() || !regexp.MustCompile(`^[a-z][a-z0-9_]*$`).MatchString(name) || o.about == "":
			panic(fmt.Sprintf("options: %v.%s must have a name in snake case and a text", t, f.Name))
		case jsonType(f.Type) == "":
			panic(fmt.Sprintf("options: %v.%s has the type %v", t, f.Name, f.Type))
		case (f.Type == secretType) != strings.HasSuffix(name, "_file") && (f.Type == secretType || f.Type.Kind() != reflect.String):
			panic(fmt.Sprintf("options: %v.%s: a secret's name ends in _file", t, f.Name))
		case slices.ContainsFunc(out, func(other option) bool { return other.name == name }):
			panic(fmt.Sprintf("options: %s is defined twice", name))
		}
		out = append(out, o)
	}
	return out
}

func bound(f reflect.StructField, tag string) *float64 {
	text := f.Tag.Get(tag)
	if text == "" {
		return nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(fmt.Sprintf("options: %s: %s: %v", f.Name, tag, err))
	}
	return &n
}

// jsonType returns the JSON Schema type of a kind, or "" if it cannot be an option.
func jsonType(t reflect.Type) string {
	switch {
	case t == durationType || t.Kind() == reflect.String:
		return "string"
	case t == textsType:
		return "array"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int64:
		return "integer"
	case reflect.Float64:
		return "number"
	}
	return ""
}

// Schema returns the JSON Schema of an options struct. The struct's tags are the only definition of
// the options: Decode uses them too.
func Schema(defaults any) string {
	v := reflect.ValueOf(defaults)
	properties := map[string]any{}
	var required []string
	for _, o := range describe(v.Type()) {
		properties[o.name] = o.property(v.FieldByIndex(o.index))
		if o.required {
			required = append(required, o.name)
		}
	}
	all := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	if required != nil {
		all["required"] = required
	}
	raw, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		panic(err) // impossible: it consists of strings and numbers
	}
	return string(raw)
}

func (o option) property(preset reflect.Value) map[string]any {
	p := map[string]any{"type": jsonType(o.kind), "description": o.about}
	lower, upper := "minimum", "maximum"
	switch {
	case o.kind == durationType:
		p["format"] = "duration" // "90s", "2m30s"; the schema cannot express bounds of a duration, so the description does
		lower, upper = "x-minimum-seconds", "x-maximum-seconds"
	case o.kind == secretType:
		p["format"] = "path"
	case o.kind == textsType:
		p["items"] = map[string]any{"type": "string", "maxLength": maxText}
		p["maxItems"] = maxItems
	case o.kind.Kind() == reflect.String:
		p["maxLength"] = maxText
	}
	if o.min != nil {
		p[lower] = *o.min
	}
	if o.max != nil {
		p[upper] = *o.max
	}
	if o.enum != nil {
		p["enum"] = o.enum
	}
	if o.pattern != nil {
		p["pattern"] = o.pattern.String()
	}
	if !preset.IsZero() && !o.required {
		p["default"] = preset.Interface()
		if d, ok := preset.Interface().(time.Duration); ok {
			p["default"] = d.String()
		}
	}
	return p
}
