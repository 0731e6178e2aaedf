package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/config"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/berthhq/berth/internal/wholefile"
)

const (
	announceEvery = 10 * time.Minute // between requests for announcements
	announceWait  = 2 * time.Second  // a slow server does not delay the command any longer
	announceKept  = 200              // ids of announcements that were shown
)

// announced is what the program remembers of announcements, in a file beside the configuration.
type announced struct {
	Asked map[string]time.Time `json:"asked"` // by the URL of the server
	Shown []string             `json:"shown"` // ids
}

// announce prints the announcements that it has not printed before to standard error, if that is a terminal. The variable
// BERTH_ANNOUNCEMENTS=off turns it off. An error is not one of the command.
func (a *App) announce(ctx context.Context, c *client.Client) {
	if a.Env("BERTH_ANNOUNCEMENTS") == "off" || !a.Interactive() {
		return
	}
	s, err := a.login()
	if err != nil {
		return
	}
	path, err := config.Path(a.Env)
	if err != nil {
		return
	}
	path = filepath.Join(filepath.Dir(path), "announcements.json")
	known := announced{Asked: map[string]time.Time{}}
	if b, err := os.ReadFile(path); err == nil {
		_ = json.Unmarshal(b, &known) // a file that cannot be read is written again
	}
	if since := a.Now().Sub(known.Asked[s.URL]); since >= 0 && since < announceEvery {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, announceWait)
	defer cancel()
	list, err := c.CurrentAnnouncements(ctx)
	if err != nil {
		return
	}
	for _, n := range list {
		if !slices.Contains(known.Shown, n.ID) {
			known.Shown = append(known.Shown, n.ID)
			fmt.Fprintf(a.Err, "\nAnnouncement (%s): %s\n", strings.ToLower(string(n.Severity)), output.Clean(strings.ReplaceAll(n.Text, "\n", " ")))
		}
	}
	if known.Asked == nil {
		known.Asked = map[string]time.Time{}
	}
	known.Asked[s.URL], known.Shown = a.Now(), known.Shown[max(0, len(known.Shown)-announceKept):]
	if b, err := json.Marshal(known); err == nil && os.MkdirAll(filepath.Dir(path), 0o700) == nil {
		_ = wholefile.Write(path, b)
	}
}
