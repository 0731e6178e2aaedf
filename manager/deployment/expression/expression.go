// Package expression evaluates PromQL over the metrics of engines, of which it keeps in memory what the expressions read. The leader
// alone imports it.
package expression

import (
	"errors"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

const (
	// MaxReach limits how far back an expression can look.
	MaxReach = 15 * time.Minute
	// maxText limits an expression, in bytes.
	maxText = 1000
	// lookback is the time for which a sample stands for the present value.
	lookback = time.Minute
	// minStep is the smallest step of a subquery, and its step if it names none is the usual time between two samples.
	minStep   = time.Second
	usualStep = 5 * time.Second
)

// Expression is a checked expression.
type Expression struct {
	text      string
	reach     time.Duration
	selectors [][]*labels.Matcher // each selects series
}

// Parse checks an expression: its result is a number or one number for each series, and it looks back MaxReach at most. The class of the
// error is InvalidArgument, and its text has the position in the expression.
func Parse(text string) (*Expression, error) {
	if len(text) > maxText {
		return nil, invalid("it has %d bytes, more than %d", len(text), maxText)
	}
	tree, err := parser.ParseExpr(text)
	if err != nil {
		var list parser.ParseErrors
		if errors.As(err, &list) && len(list) > 0 {
			return nil, wrong(text, list[0].PositionRange.Start, "%v", list[0].Err)
		}
		return nil, invalid("%v", err)
	}
	if t := tree.Type(); t != parser.ValueTypeScalar && t != parser.ValueTypeVector {
		return nil, invalid("its result is a %s instead of a number or an instant vector", parser.DocumentedType(t))
	}
	e := &Expression{text: text}
	parser.Inspect(tree, func(n parser.Node, above []parser.Node) error {
		if err == nil && n != nil { // nil ends the children of a part
			err = e.visit(n, above)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// visit checks a part of an expression, and adds what it selects.
func (e *Expression) visit(n parser.Node, above []parser.Node) error {
	at := n.PositionRange().Start
	switch x := n.(type) {
	case *parser.SubqueryExpr:
		if x.Timestamp != nil || x.StartOrEnd != 0 || x.OriginalOffset < 0 {
			return wrong(e.text, at, "@ and negative offsets cannot be used")
		}
		if x.Step != 0 && x.Step < minStep {
			return wrong(e.text, at, "the step of a subquery is at least %s", minStep)
		}
	case *parser.VectorSelector:
		if x.Timestamp != nil || x.StartOrEnd != 0 || x.OriginalOffset < 0 {
			return wrong(e.text, at, "@ and negative offsets cannot be used")
		}
		reach := lookback + x.OriginalOffset
		for _, up := range above {
			switch y := up.(type) {
			case *parser.MatrixSelector:
				reach += y.Range - lookback
			case *parser.SubqueryExpr:
				reach += y.Range + y.OriginalOffset
			}
		}
		if reach > MaxReach {
			return wrong(e.text, at, "it looks back %s, more than %s", reach, MaxReach)
		}
		e.reach = max(e.reach, reach)
		e.selectors = append(e.selectors, x.LabelMatchers)
	}
	return nil
}

// selects reports whether the expression reads a series.
func (e *Expression) selects(of labels.Labels) bool {
	for _, all := range e.selectors {
		if matches(all, of) {
			return true
		}
	}
	return false
}

func matches(all []*labels.Matcher, of labels.Labels) bool {
	for _, m := range all {
		if !m.Matches(of.Get(m.Name)) {
			return false
		}
	}
	return true
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("the expression is not valid: "+format+": %w", append(args, errdefs.ErrInvalidArgument)...)
}

// wrong returns an error with its place in the text, in characters from 1.
func wrong[P ~int](text string, at P, format string, args ...any) error {
	place := len([]rune(text[:min(max(int(at), 0), len(text))])) + 1
	return invalid("at character %d: %s", place, fmt.Sprintf(format, args...))
}
