package ssh

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/config"
	"github.com/berthhq/berth/internal/wholefile"
)

// login is how the user logs in to the gateway.
type login struct {
	identity string
	token    bool
}

func (l *login) register(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&l.identity, "identity", "i", "", "`file` with the private key of an SSH key of yours (default: found in ~/.ssh)")
	cmd.Flags().BoolVar(&l.token, "token", false, "log in with an access token, for which berth prompts, instead of an SSH key")
	cli.Exclusive(cmd, "identity", "token")
}

// gateway is the SSH gateway of a cluster, and how to log in there.
type gateway struct {
	client.SSHEndpoint
	login
	knownHosts string // path of the file with its host key
}

// keyAlias is the only name in the file of known hosts.
const keyAlias = "berth-gateway"

// address matches valid names and addresses of a gateway. None of their characters is special in
// files of ssh.
var address = regexp.MustCompile(`^[A-Za-z0-9:][A-Za-z0-9.:_-]*$`)

// newGateway asks the server for the gateway, and reports problems that ssh would not explain.
func newGateway(ctx context.Context, a *cli.App, c *client.Client, l login) (*gateway, error) {
	if a.ActAs != "" {
		return nil, cli.Usagef("--as does not apply to SSH: the gateway identifies you by your key")
	}
	at, err := c.SSHEndpoint(ctx)
	if err != nil {
		return nil, err
	}
	if at == nil {
		return nil, fmt.Errorf("this cluster has no SSH gateway; use berth session exec, or berth session forward for ports: %w", errdefs.ErrFailedPrecondition)
	}
	g := &gateway{SSHEndpoint: *at, login: l}
	key, ok := publicKey(at.HostKey)
	if !ok || !address.MatchString(at.Host) || at.Port < 1 || at.Port > 65535 {
		return nil, fmt.Errorf("the server returned an SSH gateway that is not valid: host %q, port %d, host key %q: %w", at.Host, at.Port, at.HostKey, errdefs.ErrInternal)
	}
	if err := g.findKey(ctx, a, c); err != nil {
		return nil, err
	}
	path, err := config.Path(a.Env)
	if err != nil {
		return nil, err
	}
	g.knownHosts = filepath.Join(filepath.Dir(path), fmt.Sprintf("known_hosts_%s_%d", at.Host, at.Port))
	if err := write(g.knownHosts, keyAlias+" "+key+"\n"); err != nil {
		return nil, fmt.Errorf("save the host key of the gateway: %w", err)
	}
	return g, nil
}

// findKey checks that the account has an SSH key, and looks for it in ~/.ssh. If it is not there,
// ssh tries its agent and the default files.
func (g *gateway) findKey(ctx context.Context, a *cli.App, c *client.Client) (err error) {
	switch {
	case g.token:
		return nil
	case g.identity != "":
		if _, err := os.Stat(g.identity); err != nil {
			return fmt.Errorf("--identity: %w", err)
		}
		g.identity, err = filepath.Abs(g.identity)
		return err
	}
	list, err := c.SSHKeys(ctx)
	if err != nil {
		return err
	}
	keys := map[string]bool{}
	for _, k := range list {
		if key, ok := publicKey(k.PublicKey); ok && k.Status == "ACTIVE" {
			keys[key] = true
		}
	}
	if len(keys) == 0 {
		return fmt.Errorf("your account has no active SSH key; add yours with berth ssh-key add NAME ~/.ssh/id_ed25519.pub, "+
			"or create one with berth ssh-key generate NAME FILE: %w", errdefs.ErrFailedPrecondition)
	}
	files, err := filepath.Glob(filepath.Join(a.Env("HOME"), ".ssh", "*.pub"))
	for _, file := range files {
		text, _ := os.ReadFile(file) // an unreadable file does not match
		if key, _ := publicKey(string(text)); !keys[key] {
			continue
		}
		g.identity = strings.TrimSuffix(file, ".pub")
		if _, err := os.Stat(g.identity); err != nil {
			g.identity = file // ssh takes the private key from its agent
		}
		return nil
	}
	return err
}

// keyType matches the type of a key, such as ssh-ed25519 or sk-ssh-ed25519@openssh.com.
var keyType = regexp.MustCompile(`^[a-z0-9@.-]+$`)

// publicKey returns the type and the value of a key in the format of authorized_keys, without
// the comment.
func publicKey(line string) (key string, ok bool) {
	parts := strings.Fields(line)
	if len(parts) < 2 || !keyType.MatchString(parts[0]) {
		return "", false
	}
	_, err := base64.StdEncoding.DecodeString(parts[1])
	return parts[0] + " " + parts[1], err == nil
}

// options returns the options of ssh for a host, in the words of its configuration file.
func (g *gateway) options(h host) [][2]string {
	all := [][2]string{
		{"HostName", g.Host},
		{"Port", strconv.Itoa(g.Port)},
		{"User", h.User},
		{"HostKeyAlias", keyAlias},
		{"UserKnownHostsFile", quote(g.knownHosts)},
		{"GlobalKnownHostsFile", "/dev/null"},
		{"StrictHostKeyChecking", "yes"},
		{"UpdateHostKeys", "no"},
		{"CheckHostIP", "no"},
	}
	switch {
	case g.token:
		all = append(all, [2]string{"PubkeyAuthentication", "no"}, [2]string{"PreferredAuthentications", "password"})
	case g.identity != "":
		all = append(all, [2]string{"IdentityFile", quote(g.identity)}, [2]string{"IdentitiesOnly", "yes"})
	}
	return all
}

// arguments returns the options for a command line of ssh or scp.
func (g *gateway) arguments(h host) []string {
	var all []string
	for _, o := range g.options(h) {
		all = append(all, "-o", o[0]+"="+o[1])
	}
	return all
}

// quote writes a path for ssh, which expands % in it.
func quote(path string) string {
	return `"` + strings.NewReplacer("%", "%%", `\`, `\\`, `"`, `\"`).Replace(path) + `"`
}

// write replaces a file that only its owner can read. It does nothing if the text is unchanged.
func write(path, text string) error {
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm() == 0o600 {
		if old, err := os.ReadFile(path); err == nil && string(old) == text {
			return nil
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return wholefile.Write(path, []byte(text))
}
