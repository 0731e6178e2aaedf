package server

import (
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/berthhq/berth/internal/problem"
)

// Limits of the filters and orders of one operation, including variables and aliases. The web
// page uses about a dozen conditions, and lists as long as the members of a project.
const (
	maxConditions  = 500
	maxEntries     = 2_000 // of all lists such as idIn together
	maxFilterDepth = 10    // nested and, or, not
	maxOrders      = 10    // per list
)

// filters counts the filters of an operation.
type filters struct{ conditions, entries int }

// filter counts the conditions of a field's filter; they are part of its cost.
func (w *walk) filter(f *ast.Field, args map[string]any) (int, error) {
	if order, ok := args["orderBy"].([]any); ok && len(order) > maxOrders {
		return 0, problem.Invalid(f.Name+".orderBy", "has more than %d entries", maxOrders).WithLimit(strconv.Itoa(maxOrders))
	}
	before := w.filters.conditions + w.filters.entries
	err := w.filters.add(args["where"], 1)
	return w.filters.conditions + w.filters.entries - before, err
}

// add counts a filter, and returns an error at the first limit that is exceeded.
func (c *filters) add(where any, depth int) error {
	switch where := where.(type) {
	case map[string]any:
		if depth > maxFilterDepth {
			return problem.Invalid("where", "is nested deeper than %d levels", maxFilterDepth).WithLimit(strconv.Itoa(maxFilterDepth))
		}
		for name, v := range where {
			if err := c.condition(name, v, depth); err != nil {
				return err
			}
		}
	case []any:
		for _, one := range where {
			if err := c.add(one, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *filters) condition(name string, v any, depth int) error {
	if c.conditions++; c.conditions > maxConditions {
		return problem.Invalid("where", "the filters of an operation have more than %d conditions", maxConditions).WithLimit(strconv.Itoa(maxConditions))
	}
	if name == "and" || name == "or" || name == "not" {
		return c.add(v, depth+1)
	}
	if list, ok := v.([]any); ok {
		if c.entries += len(list); c.entries > maxEntries {
			return problem.Invalid("where."+name, "the lists in the filters of an operation have more than %d entries", maxEntries).WithLimit(strconv.Itoa(maxEntries))
		}
	}
	return nil
}
