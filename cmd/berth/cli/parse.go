package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/internal/resource"
)

// Words splits a list at its commas; "none" is an empty list.
func Words(text string) []string {
	all := []string{}
	if text == "none" {
		return all
	}
	for _, w := range strings.Split(text, ",") {
		if w = strings.TrimSpace(w); w != "" {
			all = append(all, w)
		}
	}
	return all
}

// ParseCount reads a whole number that is not negative.
func ParseCount(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > math.MaxInt32 {
		return 0, fmt.Errorf("not a whole number from 0 to %d", math.MaxInt32)
	}
	return n, nil
}

// ParseCounts reads whole numbers separated by commas.
func ParseCounts(text string) ([]int, error) {
	all := []int{}
	for _, w := range Words(text) {
		n, err := ParseCount(w)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w, err)
		}
		all = append(all, n)
	}
	return all, nil
}

// NoLimit is the value with which the API removes a limit.
const NoLimit = -1

// Limited reads an amount; "none" is NoLimit.
func Limited[T int | int64](parse func(string) (T, error)) func(string) (T, error) {
	return func(text string) (T, error) {
		if text == "none" {
			return NoLimit, nil
		}
		v, err := parse(text)
		if err != nil {
			err = fmt.Errorf("%w, or none for no limit", err)
		}
		return v, err
	}
}

// ParseSeconds reads a duration such as 90s, 12h or 7d, in seconds.
func ParseSeconds(text string) (int, error) {
	d, err := ParseSpan(text)
	if err != nil || d%time.Second != 0 || d/time.Second > math.MaxInt32 {
		return 0, errors.New("not a span such as 90s, 30m, 12h or 7d")
	}
	return int(d / time.Second), nil
}

// ParseSpan is time.ParseDuration with days. It rejects negative durations.
func ParseSpan(text string) (time.Duration, error) {
	scale, number := time.Duration(1), text
	if n := len(text) - 1; n >= 0 && text[n] == 'd' {
		scale, number = 24, text[:n]+"h"
	}
	d, err := time.ParseDuration(number)
	if err != nil || d < 0 || d > math.MaxInt64/scale {
		return 0, fmt.Errorf("%q is not a duration such as 90s, 15m or 2h", text)
	}
	return d * scale, nil
}

// ParseSize reads a size such as 512m or 100g, in bytes.
func ParseSize(text string) (int64, error) {
	n, err := resource.Parse(resource.Mem, text)
	if err != nil || n < 0 {
		return 0, errors.New("not a size such as 512m or 100g")
	}
	return n, nil
}

// ParseAmounts reads amounts of slots such as cpu=4,mem=8g; "none" is no slots.
func ParseAmounts(text string) (client.Slots, error) {
	texts := map[string]string{}
	for _, one := range Words(text) {
		slot, amount, ok := strings.Cut(one, "=")
		if !ok || slot == "" || amount == "" {
			return nil, fmt.Errorf("%q: write slot=amount, for example cpu=4,mem=8g", one)
		}
		if _, twice := texts[slot]; twice {
			return nil, fmt.Errorf("%s is given twice", slot)
		}
		texts[slot] = amount
	}
	slots, err := resource.ParseSlots(texts)
	if err != nil {
		return nil, err
	}
	for slot, amount := range slots {
		if amount < 0 {
			return nil, fmt.Errorf("%s: %s is less than 0", slot, texts[slot])
		}
	}
	return slots.Strings(), nil
}

// Choice returns a parser that accepts one of a few words, also with hyphens in place of
// underscores.
func Choice(allowed ...string) func(string) (client.Enum, error) {
	return func(text string) (client.Enum, error) {
		value := Enum(text)
		if slices.Contains(allowed, value.String()) {
			return value, nil
		}
		return "", fmt.Errorf("choose one of %s", strings.ReplaceAll(strings.Join(allowed, ", "), "_", "-"))
	}
}

// Enum returns the enum value for a text in either case, with hyphens or underscores.
func Enum(text string) client.Enum {
	return client.Enum(strings.ToUpper(strings.ReplaceAll(text, "-", "_")))
}

// Enums reads several enum values separated by commas.
func Enums(text string) ([]client.Enum, error) {
	var all []client.Enum
	for _, w := range Words(text) {
		all = append(all, Enum(w))
	}
	return all, nil
}

// EnumTexts returns values in the form that people read.
func EnumTexts(values []client.Enum) []string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = v.String()
	}
	return texts
}

// Choices returns a parser for several of a few words, separated by commas.
func Choices(allowed ...string) func(string) ([]client.Enum, error) {
	one := Choice(allowed...)
	return func(text string) ([]client.Enum, error) {
		var all []client.Enum
		for _, w := range Words(text) {
			value, err := one(w)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w, err)
			}
			all = append(all, value)
		}
		return all, nil
	}
}
