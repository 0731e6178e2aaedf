package main

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"

	"github.com/berthhq/berth/client"
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

// onEach is a verb for several things, one after the other, which find makes ids
// of.
func (a *app) onEach(use, short string, find func(ctx context.Context, c *client.Client, ref string) (string, error),
	do func(ctx context.Context, c *client.Client, id string) error) *cobra.Command {
	return a.verb(use+"...", short, count(1, -1), func(ctx context.Context, c *client.Client, args []string) error {
		return a.each(args, func(ref string) error {
			id, err := find(ctx, c, ref)
			if err != nil {
				return err
			}
			return do(ctx, c, id)
		})
	})
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

// parsed binds a flag to a field that keeps its zero value unless the flag is set. The
// usage names the value of the flag in backquotes.
func parsed[T any](cmd *cobra.Command, into *T, name, usage string, parse func(text string) (T, error)) {
	cmd.Flags().Func(name, usage, func(text string) error {
		v, err := parse(text)
		if err == nil {
			*into = v
		}
		return err
	})
}

// given is parsed for a field that stays nil unless the flag is set.
func given[T any](cmd *cobra.Command, into **T, name, usage string, parse func(text string) (T, error)) {
	parsed(cmd, into, name, usage, func(text string) (*T, error) {
		v, err := parse(text)
		return &v, err
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

func givenWords(cmd *cobra.Command, into *[]string, name, usage string) {
	givenList(cmd, into, name, usage, func(text string) ([]string, error) { return words(text), nil })
}

// givenList is parsed for a list: every further use of the flag adds to it.
func givenList(cmd *cobra.Command, into *[]string, name, usage string, parse func(text string) ([]string, error)) {
	parsed(cmd, into, name, usage, func(text string) ([]string, error) {
		more, err := parse(text)
		return append(append([]string{}, *into...), more...), err
	})
}

// yesFlag is for commands that have a name typed again.
func yesFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVarP(yes, "yes", "y", false, "do not ask for the name again")
}

// as copies the values that are set from one input to another with the same fields: those
// of an update to the input that creates an object.
func as[To any](from any) To {
	var to To
	text, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(text, &to)
	}
	if err != nil {
		panic(err) // the two types do not agree
	}
	return to
}

// changes refuses a change that changes nothing.
func changes(input any) error {
	if reflect.ValueOf(input).IsZero() {
		return usagef("nothing to change; set at least one flag")
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

// holder is one domain, project, user or keypair, by its id.
type holder struct{ domain, project, user, keypair string }

// holder finds exactly one.
func (f *holderFlags) holder(ctx context.Context, c *client.Client) (h holder, err error) {
	if f.given() != 1 {
		return h, usagef("name one of --domain, --project, --user and --keypair")
	}
	switch {
	case f.domain != "":
		h.domain, err = findDomainID(ctx, c, f.domain)
	case f.project != "":
		h.project, err = findProjectID(ctx, c, f.project)
	case f.user != "":
		h.user, err = findUserID(ctx, c, f.user)
	default:
		h.keypair, err = findKeypairID(ctx, c, f.keypair)
	}
	return h, err
}
