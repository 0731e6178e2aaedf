// Package answer builds the objects and lists of GraphQL answers, for graph/exec. Fields
// in memory are read directly: without interceptors, which do nothing for such fields, and
// without goroutines. Fields of resolvers run as in gqlgen. A field whose direct read fails
// runs once more as in gqlgen, which reports the error. tools/gqlgen decides how each field
// runs.
package answer

import (
	"bytes"
	"context"
	"io"
	"sync"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Quiet is the context of direct reads. It drops errors: the field then runs as in gqlgen,
// which reports them.
var Quiet = graphql.WithResponseContext(context.Background(),
	func(context.Context, error) *gqlerror.Error { return nil }, graphql.DefaultRecover)

// Object is one object of an answer.
type Object struct {
	fields  []graphql.CollectedField
	values  []graphql.Marshaler
	later   []later
	invalid atomic.Bool // a non-null field is null
}

// later is a field that waits for a loader.
type later struct {
	i       int
	nonNull bool
	resolve func(context.Context) graphql.Marshaler
}

// NewObject returns an object without values.
func NewObject(fields []graphql.CollectedField) *Object {
	return &Object{fields: fields, values: make([]graphql.Marshaler, len(fields))}
}

// Set sets the field at i.
func (o *Object) Set(i int, v graphql.Marshaler) { o.values[i] = v }

// SetNonNull sets the field at i. Null makes the object null.
func (o *Object) SetNonNull(i int, v graphql.Marshaler) {
	if v == graphql.Null {
		o.invalid.Store(true)
	}
	o.values[i] = v
}

// Later makes Done resolve the field at i, concurrently with other such fields.
func (o *Object) Later(i int, resolve func(context.Context) graphql.Marshaler) {
	o.later = append(o.later, later{i: i, resolve: resolve})
}

// LaterNonNull is Later for a field that is not null.
func (o *Object) LaterNonNull(i int, resolve func(context.Context) graphql.Marshaler) {
	o.later = append(o.later, later{i: i, nonNull: true, resolve: resolve})
}

// Done resolves the fields that were added with Later and returns the object, or null.
func (o *Object) Done(ctx context.Context) graphql.Marshaler {
	if len(o.later) > 0 {
		var others sync.WaitGroup
		for _, l := range o.later[1:] {
			others.Go(func() { o.resolve(ctx, l) })
		}
		o.resolve(ctx, o.later[0])
		others.Wait()
	}
	if o.invalid.Load() {
		return graphql.Null
	}
	return o
}

func (o *Object) resolve(ctx context.Context, l later) {
	var v graphql.Marshaler
	func() {
		defer Recovered(ctx, &v)
		v = l.resolve(ctx)
	}()
	if l.nonNull {
		o.SetNonNull(l.i, v)
	} else {
		o.Set(l.i, v)
	}
}

// Recovered is deferred: it makes a panic an error of the field of ctx, which is null.
func Recovered(ctx context.Context, v *graphql.Marshaler) {
	if r := recover(); r != nil {
		graphql.AddError(ctx, graphql.Recover(ctx, r))
		*v = graphql.Null
	}
}

// MarshalGQL implements graphql.Marshaler.
func (o *Object) MarshalGQL(w io.Writer) {
	if buf, ok := w.(*bytes.Buffer); ok {
		o.write(buf)
		return
	}
	Buffered(func(buf *bytes.Buffer) {
		o.write(buf)
		_, _ = w.Write(buf.Bytes())
	})
}

func (o *Object) write(w *bytes.Buffer) {
	first := true
	w.WriteByte('{')
	for i := range o.fields {
		if o.repeats(i) {
			continue
		}
		if !first {
			w.WriteByte(',')
		}
		first = false
		w.WriteByte('"')
		w.WriteString(o.fields[i].Alias) // a name contains no characters to escape
		w.WriteString(`":`)
		o.values[i].MarshalGQL(w)
	}
	w.WriteByte('}')
}

// repeats reports whether an earlier field has the alias of field i. This happens if a
// selection on an interface and one on its object contain the same field.
func (o *Object) repeats(i int) bool {
	for j := range o.fields[:i] {
		if o.fields[j].Alias == o.fields[i].Alias {
			return true
		}
	}
	return false
}
