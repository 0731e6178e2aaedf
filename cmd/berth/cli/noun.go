package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
)

const (
	// completeTime limits a completion: a prompt that waits longer is worse than no proposal.
	completeTime = 2 * time.Second
	// maxProposals limits the entries that are read for a completion.
	maxProposals = 200
)

// Proposer returns the names of the objects of one kind.
type Proposer func(ctx context.Context, c *client.Client) ([]string, error)

// nouns are the kinds of objects by the word that usage lines have for them.
var nouns = map[string]Proposer{
	"SESSION": func(ctx context.Context, c *client.Client) ([]string, error) {
		return names(c.Sessions(ctx, client.SessionFilter{Live: true, Limit: maxProposals}))(func(x client.Session) string { return x.Name })
	},
	"DEPLOYMENT": func(ctx context.Context, c *client.Client) ([]string, error) {
		return names(c.Deployments(ctx, client.DeploymentFilter{Live: true, Limit: maxProposals}))(func(x client.Deployment) string { return x.Name })
	},
	"FOLDER": func(ctx context.Context, c *client.Client) ([]string, error) {
		return names(c.Folders(ctx, client.FolderFilter{}))(func(x client.Folder) string { return x.Name })
	},
	"AGENT": func(ctx context.Context, c *client.Client) ([]string, error) {
		return names(c.Agents(ctx, ""))(func(x client.Agent) string { return x.Name })
	},
	"IMAGE": func(ctx context.Context, c *client.Client) ([]string, error) {
		return names(c.Images(ctx, ""))(func(x client.Image) string { return x.Name })
	},
	"REGISTRY": func(ctx context.Context, c *client.Client) ([]string, error) {
		return names(c.Registries(ctx))(func(x client.Registry) string { return x.Name })
	},
	"PROJECT": func(ctx context.Context, c *client.Client) ([]string, error) {
		return names(c.Projects(ctx, ""))(func(x client.Project) string { return x.Name })
	},
	"DOMAIN": func(ctx context.Context, c *client.Client) ([]string, error) {
		return names(c.Domains(ctx, ""))(func(x client.Domain) string { return x.Name })
	},
	"GROUP": func(ctx context.Context, c *client.Client) ([]string, error) {
		return names(c.Groups(ctx, ""))(func(x client.Group) string { return x.Name })
	},
	"USER": func(ctx context.Context, c *client.Client) ([]string, error) {
		return names(c.Users(ctx, client.UserFilter{}))(func(x client.User) string { return x.Email })
	},
	"POLICY": func(ctx context.Context, c *client.Client) ([]string, error) {
		return names(c.Policies(ctx, ""))(func(x client.Policy) string { return x.Name })
	},
	"ROLE": func(ctx context.Context, c *client.Client) ([]string, error) {
		return names(c.Roles(ctx, ""))(func(x client.Role) string { return x.Name })
	},
	"CHECKER": func(ctx context.Context, c *client.Client) ([]string, error) {
		return names(c.IdleCheckers(ctx, ""))(func(x client.IdleChecker) string { return x.Name })
	},
	"PROVIDER": func(ctx context.Context, c *client.Client) ([]string, error) {
		return names(c.IdentityProviders(ctx))(func(x client.IdentityProvider) string { return x.Name })
	},
	"VOLUME": func(ctx context.Context, c *client.Client) ([]string, error) {
		return names(c.Volumes(ctx))(func(x client.Volume) string { return x.Name })
	},
	"STORAGE": func(ctx context.Context, c *client.Client) ([]string, error) {
		return names(c.ObjectStorages(ctx, ""))(func(x client.ObjectStorage) string { return x.Name })
	},
	"KEYPAIR": func(ctx context.Context, c *client.Client) ([]string, error) {
		return names(c.Keypairs(ctx, ""))(func(x client.Keypair) string { return x.Name })
	},
	"ENDPOINT": func(ctx context.Context, c *client.Client) ([]string, error) {
		return names(c.ChatEndpoints(ctx, ""))(func(x client.ChatEndpoint) string { return x.Name })
	},
	"TOKEN": func(ctx context.Context, c *client.Client) ([]string, error) {
		return names(c.AccessTokens(ctx))(func(x client.AccessToken) string { return x.ID + "\t" + x.Name })
	},
	"BUILD": func(ctx context.Context, c *client.Client) ([]string, error) {
		return names(c.ImageBuilds(ctx, client.Where{}, maxProposals))(func(x client.ImageBuild) string { return x.ID })
	},
	"CHAT": func(ctx context.Context, c *client.Client) ([]string, error) {
		return names(c.Chats(ctx, "", maxProposals))(func(x client.Chat) string { return x.ID + "\t" + x.Title })
	},
}

// own are words whose meaning depends on the command that has them.
var own = map[string]Proposer{
	"session-group NAME": func(ctx context.Context, c *client.Client) ([]string, error) {
		return names(c.SessionGroups(ctx, ""))(func(x client.SessionGroup) string { return x.Name })
	},
	"template NAME": func(ctx context.Context, c *client.Client) ([]string, error) {
		return names(c.SessionTemplates(ctx, ""))(func(x client.SessionTemplate) string { return x.Name })
	},
	"agent NAME": nouns["AGENT"],
	"task ID": func(ctx context.Context, c *client.Client) ([]string, error) {
		return names(c.Tasks(ctx, client.TaskFilter{Limit: maxProposals}))(func(x client.Task) string { return x.ID + "\t" + string(x.Kind) })
	},
	"ssh-key KEY": func(ctx context.Context, c *client.Client) ([]string, error) {
		return names(c.SSHKeys(ctx))(func(x client.SSHKey) string { return x.Name })
	},
}

// newNames are the verbs whose NAME is that of a new object.
var newNames = []string{"create", "generate", "upload", "issue", "add"}

// ofFlags are the kinds of objects that flags name.
var ofFlags = map[string]string{
	"project": "PROJECT", "within-project": "PROJECT", "group": "GROUP", "user": "USER", "owner": "USER", "as": "USER", "domain": "DOMAIN",
	"agent": "AGENT", "image": "IMAGE", "keypair": "KEYPAIR", "deployment": "DEPLOYMENT", "policy": "POLICY",
}

// names returns a function that lists the text of each object, or the error of the list.
func names[T any](list []T, err error) func(text func(T) string) ([]string, error) {
	return func(text func(T) string) ([]string, error) {
		all := []string{}
		for _, x := range list {
			all = append(all, text(x))
		}
		return all, err
	}
}

// completeNouns adds completions to all commands below one: for each argument whose word in the usage line is that of a kind of
// object, and for flags that name an object.
func (a *App) completeNouns(cmd *cobra.Command) {
	if cmd.ValidArgsFunction == nil {
		if words := argumentWords(cmd.Use); len(words) > 0 {
			cmd.ValidArgsFunction = a.completeWords(cmd, words)
		}
	}
	for flag, noun := range ofFlags {
		if cmd.LocalNonPersistentFlags().Lookup(flag) != nil || cmd.PersistentFlags().Lookup(flag) != nil {
			// An error means that the command has its own completion.
			_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
				return a.Propose(cmd.Context(), nouns[noun])
			})
		}
	}
	for _, sub := range cmd.Commands() {
		a.completeNouns(sub)
	}
}

// argumentWords returns the words of a usage line for its arguments: "cp FOLDER:FROM... [USER]" has FOLDER:FROM... and USER.
func argumentWords(use string) (words []string) {
	for i, w := range strings.Fields(use) {
		w = strings.Trim(w, "[]")
		switch {
		case w == "--", strings.HasPrefix(w, "--"):
			return words
		case i == 0, strings.HasPrefix(w, "-"):
		default:
			words = append(words, w)
		}
	}
	return words
}

// completeWords completes each argument by its word. Words of files are completed by the shell.
func (a *App) completeWords(of *cobra.Command, words []string) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		word := words[len(words)-1]
		if len(args) < len(words) {
			word = words[len(args)]
		} else if !strings.HasSuffix(word, "...") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for _, one := range strings.Split(strings.TrimSuffix(word, "..."), "|") {
			if p := proposerOf(of, one); p != nil {
				return a.Propose(cmd.Context(), p)
			}
		}
		if strings.Contains(word, "FILE") || strings.Contains(word, "SOURCE") || word == "TARGET" {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// proposerOf returns the proposer for a word of a command, or nil.
func proposerOf(cmd *cobra.Command, word string) Proposer {
	word, _, _ = strings.Cut(word, "[")
	word, _, _ = strings.Cut(word, ":")
	if cmd.Parent() != nil && !slices.Contains(newNames, cmd.Name()) {
		if p := own[cmd.Parent().Name()+" "+word]; p != nil {
			return p
		}
	}
	return nouns[word]
}

// Propose returns the names of a kind, or none if the server does not answer in time or refuses: an error on the prompt helps no
// person.
func (a *App) Propose(ctx context.Context, of Proposer) ([]string, cobra.ShellCompDirective) {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	c, err := a.Client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, err := of(ctx, c)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	slices.Sort(list)
	return slices.Compact(list), cobra.ShellCompDirectiveNoFileComp
}

// ProposeNouns returns the names of several kinds, by their words in usage lines.
func (a *App) ProposeNouns(ctx context.Context, words ...string) (all []string, how cobra.ShellCompDirective) {
	for _, word := range words {
		list, _ := a.Propose(ctx, nouns[word])
		all = append(all, list...)
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}
