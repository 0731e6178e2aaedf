package answer_test

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/berthhq/berth/graph/answer"
)

type word string

// TestEnumsAreInCapitals reads and writes every value of the schema.
func TestEnumsAreInCapitals(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../schema.graphql")
	if err != nil {
		t.Fatal(err)
	}
	schema, err := gqlparser.LoadSchema(&ast.Source{Name: "schema.graphql", Input: string(text)})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for name, def := range schema.Types {
		if def.BuiltIn {
			continue
		}
		for _, v := range def.EnumValues {
			n++
			if v.Name != strings.ToUpper(v.Name) {
				t.Errorf("%s.%s is not in capitals", name, v.Name)
			}
			read, err := answer.ReadWord[word](v.Name)
			if err != nil || string(read) != strings.ToLower(v.Name) {
				t.Errorf("%s.%s is read as %q, %v", name, v.Name, read, err)
			}
			var buf, other bytes.Buffer
			answer.Word(read).MarshalGQL(&buf)
			answer.Word(read).MarshalGQL(io.Writer(&other))
			if want := `"` + v.Name + `"`; buf.String() != want || other.String() != want {
				t.Errorf("%s.%s is written as %s and %s", name, v.Name, &buf, &other)
			}
		}
	}
	if n < 100 {
		t.Errorf("%d values in the schema", n)
	}
}

func TestWordsAreNotGuessed(t *testing.T) {
	t.Parallel()
	for _, v := range []any{"running", "Running", 1, nil, true} {
		if got, err := answer.ReadWord[word](v); err == nil {
			t.Errorf("%v is read as %q", v, got)
		}
	}
	var buf bytes.Buffer
	if answer.Word(word("")).MarshalGQL(&buf); buf.String() != "null" {
		t.Errorf("the empty word is written as %s", &buf)
	}
}
