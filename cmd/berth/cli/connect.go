package cli

import (
	"fmt"
	"strings"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/config"
)

// Client returns a client for the selected context, or for BERTH_URL with the credentials of the
// environment.
func (a *App) Client() (*client.Client, error) {
	c, err := a.login()
	if err != nil {
		return nil, err
	}
	var made *client.Client
	if c.AccessKey != "" {
		made, err = client.NewSigned(c.URL, c.AccessKey, c.SecretKey, a.UserAgent())
	} else {
		made, err = client.New(c.URL, c.Token, a.UserAgent())
	}
	if err != nil || a.ActAs == "" {
		return made, err
	}
	return made.As(a.ActAs), nil
}

// UserAgent is the name of this program for servers.
func (a *App) UserAgent() string { return "berth/" + a.Version }

// server is the address of a server and the credentials for it: a token, or a keypair that signs
// requests.
type server struct{ URL, Token, AccessKey, SecretKey string }

// login finds the server and the credentials. A stored token is sent only to the server that issued
// it.
func (a *App) login() (*server, error) {
	var c server
	if a.ContextName == "" {
		c = server{a.Env("BERTH_URL"), a.Env("BERTH_TOKEN"), a.Env("BERTH_ACCESS_KEY"), a.Env("BERTH_SECRET_KEY")}
	}
	switch {
	case (c.AccessKey == "") != (c.SecretKey == ""):
		return nil, Usagef("set both BERTH_ACCESS_KEY and BERTH_SECRET_KEY, or neither")
	case c.AccessKey != "" && c.Token != "":
		return nil, Usagef("both BERTH_TOKEN and BERTH_ACCESS_KEY are set; choose one")
	}
	if shown := c.Token != "" || c.AccessKey != ""; !shown || c.URL == "" {
		_, f, err := a.Config()
		if err != nil {
			return nil, err
		}
		stored, err := f.Get(a.ContextName)
		if err != nil {
			return nil, err
		}
		if stored != nil && c.URL == "" {
			c.URL = stored.URL
		}
		if stored != nil && !shown && strings.TrimRight(c.URL, "/") == stored.URL {
			c.Token = stored.Token
		}
	}
	if c.URL == "" || c.Token == "" && c.AccessKey == "" {
		return nil, fmt.Errorf("not logged in; start with: berth login URL: %w", errdefs.ErrUnauthenticated)
	}
	return &c, nil
}

// Config loads the stored contexts, and returns the path of their file.
func (a *App) Config() (path string, f *config.File, err error) {
	if path, err = config.Path(a.Env); err != nil {
		return "", nil, err
	}
	f, err = config.Load(path)
	return path, f, err
}
