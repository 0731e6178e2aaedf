package chatendpoint

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m) }

func TestChatEndpoints(t *testing.T) {
	f := clitest.New(t, func(a *cli.App) []*cobra.Command {
		return []*cobra.Command{cli.Group("admin", "Test", Command(a))}
	})
	one := `{"id":"e","name":"example","url":"https://api.example.com/v1","models":["big"],"domains":[],"enabled":true,"hasKey":true,"createdAt":"2026-03-01T12:00:00Z"}`
	f.Data("ChatEndpoints", `{"chatEndpoints":`+clitest.Edges(one)+`}`)
	f.Data("CreateChatEndpoint", `{"payload":{"endpoint":`+one+`}}`)
	f.Data("UpdateChatEndpoint", `{"payload":{"endpoint":`+one+`}}`)
	f.Data("DeleteChatEndpoint", `{"payload":{"id":"e"}}`)
	for _, line := range []string{
		"ls", "create example --url https://api.example.com/v1 --model big --key-stdin", "update example --disable", "update example --domain all", "rm example",
	} {
		got := f.RunWith(map[string]string{"BERTH_TOKEN": "secret", "BERTH_URL": f.URL}, "sk-secret\n", append([]string{"admin", "chat-endpoint"}, strings.Fields(line)...)...)
		if got.Code != 0 || strings.Contains(got.Out, "sk-secret") || !strings.HasPrefix(line, "rm") && !strings.Contains(got.Out, "big") {
			t.Errorf("%s: %+v", line, got)
		}
	}
	for _, line := range []string{"create example", "update example", "update example --enable --disable"} {
		if got := f.Run(append([]string{"admin", "chat-endpoint"}, strings.Fields(line)...)...); got.Code == 0 {
			t.Errorf("%s: %+v", line, got)
		}
	}
}
