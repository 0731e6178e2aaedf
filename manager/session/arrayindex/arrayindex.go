// Package arrayindex reads the indexes of session arrays, such as 1-100:2%4.
package arrayindex

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berthhq/berth/internal/problem"
)

const maxIndex = 999_999

// Indexes are the indexes of an array as text and as a list, and the number of members that run at
// once.
type Indexes struct {
	Text       string
	List       []int
	MaxRunning *int
}

// Parse reads a list of numbers and ranges with steps, and the limit after %. It returns an error for
// more than most indexes.
func Parse(text string, most int) (*Indexes, error) {
	const field = "indexes"
	list, limit, limited := strings.Cut(strings.ReplaceAll(text, " ", ""), "%")
	x := &Indexes{Text: list}
	if limited {
		n, err := strconv.Atoi(limit)
		if err != nil || n < 1 || n > maxIndex {
			return nil, problem.Invalid(field, "%q after %% is not a number of members from 1 to %d", limit, maxIndex)
		}
		x.MaxRunning = &n
	}
	if len(list) > maxIndexText {
		return nil, problem.Invalid(field, "has %d characters", len(list)).WithLimit(fmt.Sprint(maxIndexText))
	}
	for part := range strings.SplitSeq(list, ",") {
		from, to, step, err := parseRange(part)
		if err != nil {
			return nil, problem.Invalid(field, "%v", err)
		}
		if n := (to-from)/step + 1; len(x.List)+n > most {
			return nil, problem.Invalid(field, "%s has more than %d indexes", list, most).WithLimit(fmt.Sprint(most))
		}
		for i := from; i <= to; i += step {
			x.List = append(x.List, i)
		}
	}
	sorted := slices.Sorted(slices.Values(x.List))
	for i := 1; i < len(sorted); i++ {
		if sorted[i] == sorted[i-1] {
			return nil, problem.Invalid(field, "%s has index %d twice", list, sorted[i])
		}
	}
	x.List = sorted
	return x, nil
}

// maxIndexText limits the text of indexes.
const maxIndexText = 4096

// parseRange reads 3, 1-10 or 1-10:2.
func parseRange(text string) (from, to, step int, err error) {
	step = 1
	span, every, stepped := strings.Cut(text, ":")
	if stepped {
		if step, err = parseNumber(every); err != nil || step == 0 {
			return 0, 0, 0, fmt.Errorf("%q after : is not a step from 1 to %d", every, maxIndex)
		}
	}
	first, last, ranged := strings.Cut(span, "-")
	if from, err = parseNumber(first); err != nil {
		return 0, 0, 0, err
	}
	switch {
	case !ranged && stepped:
		return 0, 0, 0, fmt.Errorf("%q has a step, but is not a range such as 1-10:2", text)
	case !ranged:
		return from, from, step, nil
	}
	if to, err = parseNumber(last); err != nil {
		return 0, 0, 0, err
	}
	if to < from {
		return 0, 0, 0, fmt.Errorf("range %q ends before it begins", text)
	}
	return from, to, step, nil
}

func parseNumber(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n > maxIndex {
		return 0, fmt.Errorf("%q is not an index from 0 to %d or a range such as 1-100", text, maxIndex)
	}
	return int(n), nil
}
