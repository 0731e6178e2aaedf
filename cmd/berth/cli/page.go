package cli

import (
	"fmt"
	"strings"

	"github.com/berthhq/berth/cmd/berth/output"
)

// PageURL returns the address of a page of the server, such as PageURL("/sessions/" + id).
func (a *App) PageURL(path string) (string, error) {
	c, err := a.login()
	if err != nil {
		return "", err
	}
	return strings.TrimRight(c.URL, "/") + path, nil
}

// NotePage prints the address of a page for a person at a terminal, who can open it from there. Programs have the ID.
func (a *App) NotePage(path string) {
	if _, terminal := Terminal(a.Err); !terminal {
		return
	}
	if address, err := a.PageURL(path); err == nil {
		fmt.Fprintln(a.Err, "Page: "+output.Clean(address))
	}
}
