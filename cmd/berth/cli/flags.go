package cli

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
)

// ParsedFlag binds a flag to a field that keeps its zero value unless the flag is set. The
// usage names the value of the flag in backquotes.
func ParsedFlag[T any](cmd *cobra.Command, into *T, name, usage string, parse func(text string) (T, error)) {
	cmd.Flags().Func(name, usage, func(text string) error {
		v, err := parse(text)
		if err == nil {
			*into = v
		}
		return err
	})
}

// OptionalFlag is parsed for a field that stays nil unless the flag is set.
func OptionalFlag[T any](cmd *cobra.Command, into **T, name, usage string, parse func(text string) (T, error)) {
	ParsedFlag(cmd, into, name, usage, func(text string) (*T, error) {
		v, err := parse(text)
		return &v, err
	})
}

// OptionalText is OptionalFlag for a string.
func OptionalText(cmd *cobra.Command, into **string, name, usage string) {
	OptionalFlag(cmd, into, name, usage, func(text string) (string, error) { return text, nil })
}

// OptionalBool binds a flag that is true without a value.
func OptionalBool(cmd *cobra.Command, into **bool, name, usage string) {
	cmd.Flags().BoolFunc(name, usage, func(text string) error {
		v, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("write true or false")
		}
		*into = &v
		return nil
	})
}

// OptionalCount is OptionalFlag for a whole number.
func OptionalCount(cmd *cobra.Command, into **int, name, usage string) {
	OptionalFlag(cmd, into, name, usage, ParseCount)
}

// WordsFlag is ListFlag for words separated by commas.
func WordsFlag(cmd *cobra.Command, into *[]string, name, usage string) {
	ListFlag(cmd, into, name, usage, func(text string) ([]string, error) { return Words(text), nil })
}

// EnumFlag adds a flag for an enum value that the server checks.
func EnumFlag(cmd *cobra.Command, into *client.Enum, name, usage string) {
	ParsedFlag(cmd, into, name, usage, func(text string) (client.Enum, error) { return Enum(text), nil })
}

// ListFlag is ParsedFlag for a list: every further use of the flag appends to it.
func ListFlag[T any](cmd *cobra.Command, into *[]T, name, usage string, parse func(text string) ([]T, error)) {
	ParsedFlag(cmd, into, name, usage, func(text string) ([]T, error) {
		more, err := parse(text)
		return append(append([]T{}, *into...), more...), err
	})
}

// YesFlag adds the flag that skips a confirmation.
func YesFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVarP(yes, "yes", "y", false, "do not ask for the name again")
}

// RawFlag adds the flag that turns Calm off.
func RawFlag(cmd *cobra.Command, raw *bool) {
	cmd.Flags().BoolVar(raw, "raw", false, "print control sequences on a terminal too, not only colours")
}

// Convert copies the set values from one input to another with the same fields, for example an
// update to a create input.
func Convert[To any](from any) To {
	var to To
	text, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(text, &to)
	}
	if err != nil {
		panic(err) // the fields of the two types differ
	}
	return to
}

// RequireChanges returns an error if an update changes nothing.
func RequireChanges(input any) error {
	if reflect.ValueOf(input).IsZero() {
		return Usagef("nothing to change; set at least one flag")
	}
	return nil
}

// HolderFlags name one domain, project, user or keypair.
type HolderFlags struct{ Domain, Project, User, Keypair string }

// Add adds the flags to a command.
func (f *HolderFlags) Add(cmd *cobra.Command, keypair bool) {
	flags := cmd.Flags()
	flags.StringVar(&f.Domain, "domain", "", "a domain, by name or id")
	flags.StringVar(&f.Project, "project", "", "a project, by name, domain/name or id")
	flags.StringVar(&f.User, "user", "", "a user, by e-mail, username or id")
	if keypair {
		flags.StringVar(&f.Keypair, "keypair", "", "a keypair of yours by name or access key, of others as user/name, or by id")
	}
}

// Given counts the flags that are set.
func (f *HolderFlags) Given() int { return CountSet(f.Domain, f.Project, f.User, f.Keypair) }

// CountSet counts the references that are not empty.
func CountSet(refs ...string) (n int) {
	for _, ref := range refs {
		if ref != "" {
			n++
		}
	}
	return n
}

// Holder is one domain, project, user or keypair, by its id.
type Holder struct{ Domain, Project, User, Keypair string }

// Holder looks up the holder that the flags name. Exactly one flag must be set.
func (f *HolderFlags) Holder(ctx context.Context, c *client.Client) (h Holder, err error) {
	if f.Given() != 1 {
		return h, Usagef("name one of --domain, --project, --user and --keypair")
	}
	switch {
	case f.Domain != "":
		h.Domain, err = FindDomainID(ctx, c, f.Domain)
	case f.Project != "":
		h.Project, err = FindProjectID(ctx, c, f.Project)
	case f.User != "":
		h.User, err = FindUserID(ctx, c, f.User)
	default:
		h.Keypair, err = FindKeypairID(ctx, c, f.Keypair)
	}
	return h, err
}

// Ptr returns a pointer to a copy of a value.
func Ptr[T any](v T) *T { return &v }

// Exclusive refuses a command with more than one of the flags.
func Exclusive(cmd *cobra.Command, flags ...string) {
	next := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		first := ""
		for _, name := range flags {
			switch {
			case !cmd.Flags().Changed(name):
			case first == "":
				first = name
			default:
				return Usagef("--%s and --%s cannot be given together", first, name)
			}
		}
		if next == nil {
			return nil
		}
		return next(cmd, args)
	}
}
