package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berthhq/berth/internal/client"
	"github.com/berthhq/berth/internal/resource"
	"github.com/spf13/cobra"
)

// verb is a command that asks the server.
func (a *app) verb(use, short string, args cobra.PositionalArgs, do func(ctx context.Context, c *client.Client, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: short,
		Args:  args,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			return do(cmd.Context(), c, args)
		},
	}
}

// list is a verb that lists things.
func (a *app) list(short string, do func(ctx context.Context, c *client.Client, args []string) error) *cobra.Command {
	cmd := a.verb("ls", short, count(0, 0), do)
	cmd.Aliases = []string{"list"}
	return cmd
}

// alias gives a command another name.
func alias(cmd *cobra.Command, names ...string) *cobra.Command {
	cmd.Aliases = append(cmd.Aliases, names...)
	return cmd
}

// given binds a flag to a field that stays nil unless the flag is there. The
// usage has what the flag takes in backquotes.
func given[T any](cmd *cobra.Command, into **T, name, usage string, parse func(text string) (T, error)) {
	cmd.Flags().Func(name, usage, func(text string) error {
		v, err := parse(text)
		if err == nil {
			*into = &v
		}
		return err
	})
}

func givenText(cmd *cobra.Command, into **string, name, usage string) {
	given(cmd, into, name, usage, func(text string) (string, error) { return text, nil })
}

// givenBool binds a flag that is true without a value.
func givenBool(cmd *cobra.Command, into **bool, name, usage string) {
	cmd.Flags().BoolFunc(name, usage, func(text string) error {
		v, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("write true or false")
		}
		*into = &v
		return nil
	})
}

func givenCount(cmd *cobra.Command, into **int, name, usage string) {
	given(cmd, into, name, usage, parseCount)
}

func givenWords(cmd *cobra.Command, into **[]string, name, usage string) {
	givenList(cmd, into, name, usage, func(text string) ([]string, error) { return words(text), nil })
}

// givenList is given for a list: a flag that is there again adds to it.
func givenList(cmd *cobra.Command, into **[]string, name, usage string, parse func(text string) ([]string, error)) {
	given(cmd, into, name, usage, func(text string) ([]string, error) {
		all, err := parse(text)
		if err == nil && *into != nil {
			all = append(**into, all...)
		}
		return all, err
	})
}

// words cuts a list at its commas; none means an empty one.
func words(text string) []string {
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

func parseCount(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > math.MaxInt32 {
		return 0, fmt.Errorf("not a whole number from 0 to %d", math.MaxInt32)
	}
	return n, nil
}

func parseCounts(text string) ([]int, error) {
	all := []int{}
	for _, w := range words(text) {
		n, err := parseCount(w)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w, err)
		}
		all = append(all, n)
	}
	return all, nil
}

// noLimit is what the API takes for a limit that goes away.
const noLimit = -1

// limited reads an amount, or none for no limit.
func limited[T int | int64](parse func(string) (T, error)) func(string) (T, error) {
	return func(text string) (T, error) {
		if text == "none" {
			return noLimit, nil
		}
		v, err := parse(text)
		if err != nil {
			err = fmt.Errorf("%w, or none for no limit", err)
		}
		return v, err
	}
}

// parseSeconds reads a span such as 90s, 12h or 7d, in seconds.
func parseSeconds(text string) (int, error) {
	d, err := parseSpan(text)
	if err != nil || d%time.Second != 0 || d/time.Second > math.MaxInt32 {
		return 0, errors.New("not a span such as 90s, 30m, 12h or 7d")
	}
	return int(d / time.Second), nil
}

// parseSpan is time.ParseDuration with days and without negative spans.
func parseSpan(text string) (time.Duration, error) {
	scale, number := time.Duration(1), text
	if n := len(text) - 1; n >= 0 && text[n] == 'd' {
		scale, number = 24, text[:n]+"h"
	}
	d, err := time.ParseDuration(number)
	if err != nil || d < 0 || d > math.MaxInt64/scale {
		return 0, fmt.Errorf("%q is no span of time", text)
	}
	return d * scale, nil
}

// parseSize reads a size such as 512m or 100g, in bytes.
func parseSize(text string) (int64, error) {
	n, err := resource.Parse(resource.Mem, text)
	if err != nil || n < 0 {
		return 0, errors.New("not a size such as 512m or 100g")
	}
	return n, nil
}

// parseAmounts reads slots in people's form: cpu=4,mem=8g; none is no slots.
func parseAmounts(text string) (resource.Slots, error) {
	texts := map[string]string{}
	for _, one := range words(text) {
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
	return slots, nil
}

// choice reads one of few words, which may be written with dashes.
func choice(allowed ...string) func(string) (string, error) {
	return func(text string) (string, error) {
		word := strings.ReplaceAll(text, "-", "_")
		if slices.Contains(allowed, word) {
			return word, nil
		}
		return "", fmt.Errorf("choose one of %s", strings.ReplaceAll(strings.Join(allowed, ", "), "_", "-"))
	}
}

// choices reads several of few words with commas between.
func choices(allowed ...string) func(string) ([]string, error) {
	one := choice(allowed...)
	return func(text string) ([]string, error) {
		all := words(text)
		for i, w := range all {
			word, err := one(w)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w, err)
			}
			all[i] = word
		}
		return all, nil
	}
}

// yesFlag is for commands that have a name typed again.
func yesFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVarP(yes, "yes", "y", false, "do not ask for the name again")
}

// changes refuses a change that changes nothing.
func changes(input any) error {
	if reflect.ValueOf(input).IsZero() {
		return usagef("nothing to change; say with flags what")
	}
	return nil
}

// holderFlags name one domain, project, user or keypair.
type holderFlags struct{ domain, project, user, keypair string }

func (f *holderFlags) add(cmd *cobra.Command, keypair bool) {
	flags := cmd.Flags()
	flags.StringVar(&f.domain, "domain", "", "a domain, by name or id")
	flags.StringVar(&f.project, "project", "", "a project, by name, domain/name or id")
	flags.StringVar(&f.user, "user", "", "a user, by e-mail, username or id")
	if keypair {
		flags.StringVar(&f.keypair, "keypair", "", "a keypair of yours by name or access key, of others as user/name, or by id")
	}
}

func (f *holderFlags) given() int { return howMany(f.domain, f.project, f.user, f.keypair) }

// howMany counts the flags that are there.
func howMany(refs ...string) (n int) {
	for _, ref := range refs {
		if ref != "" {
			n++
		}
	}
	return n
}

// holder finds exactly one.
func (f *holderFlags) holder(ctx context.Context, c *client.Client) (h client.Holder, err error) {
	if f.given() != 1 {
		return h, usagef("name one of --domain, --project, --user and --keypair")
	}
	switch {
	case f.domain != "":
		h.Domain, err = findDomainID(ctx, c, f.domain)
	case f.project != "":
		h.Project, err = findProjectID(ctx, c, f.project)
	case f.user != "":
		h.User, err = findUserID(ctx, c, f.user)
	default:
		h.Keypair, err = findKeypairID(ctx, c, f.keypair)
	}
	return h, err
}
