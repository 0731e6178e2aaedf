package account

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
)

// ownLogin creates a credential that does not end with the token of the context: it uses a login of
// its own.
type ownLogin struct {
	wanted bool
	as     client.Credentials
}

func (l *ownLogin) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&l.wanted, "login", false, "log in with your password for this, so that it does not end with the token of this context")
	cmd.Flags().StringVar(&l.as.Code, "code", "", "code of the second factor, or a recovery code, for --login")
}

// withOwnLogin runs do with the token of the context or, if requested, with a login of its own.
func withOwnLogin(ctx context.Context, a *cli.App, c *client.Client, l ownLogin, do func(c *client.Client) error) (err error) {
	if !l.wanted {
		return do(c)
	}
	if l.as.Password, err = ownPassword(ctx, a); err != nil {
		return err
	}
	return loggedIn(ctx, a, l.as, do)
}

// noteMaker prints a note if a new credential ends earlier than the user may expect.
func noteMaker(a *cli.App, maker *string, expires *time.Time) {
	if maker == nil {
		return
	}
	end := ""
	if expires != nil {
		end = fmt.Sprintf(", on %s at the latest", a.Moment(expires))
	}
	a.Note("It ends with the credential of this context%s. For one of its own use --login.", end)
}

// madeWith counts the active credentials that end with a token.
func madeWith(ctx context.Context, c *client.Client, token string) (n int, err error) {
	count := func(maker *string, status client.Enum) {
		if maker != nil && *maker == token && status == "ACTIVE" {
			n++
		}
	}
	tokens, err := c.AccessTokens(ctx)
	if err != nil {
		return 0, err
	}
	for _, t := range tokens {
		count(t.MakerID, t.Status)
	}
	pairs, err := c.Keypairs(ctx, "")
	if err != nil {
		return 0, err
	}
	for _, k := range pairs {
		count(k.MakerID, k.Status)
	}
	keys, err := c.SSHKeys(ctx)
	for _, k := range keys {
		count(k.MakerID, k.Status)
	}
	return n, err
}
