package chats

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m) }

func TestChats(t *testing.T) {
	f := clitest.New(t, func(a *cli.App) []*cobra.Command { return []*cobra.Command{Command(a)} })
	chat := `{"id":"c","title":"Stars","blind":false,"shared":true,"own":true,"createdAt":"2026-03-01T12:00:00Z","updatedAt":"2026-03-01T12:00:00Z"}`
	f.Data("Chats", `{"chats":`+clitest.Edges(chat)+`}`)
	f.Data("ChatTurns", `{"chat":{"id":"c","turns":`+clitest.Edges(`{"id":"t","previous":null,"prompt":"why?\nreally","createdAt":"2026-03-01T12:00:00Z","attachments":[],"votes":[],
	  "answers":[{"id":"a","turn":"t","column":0,"previous":null,"status":"DONE","message":"","text":"one\n\u001b[2Jtwo","reasoning":"","revision":1,"createdAt":"2026-03-01T12:00:00Z",
	    "endedAt":"2026-03-01T12:00:00Z","model":{"name":"llama","revision":null,"deployment":null,"endpoint":null},"metrics":null}]}`)+`}}`)
	f.Data("ExportChat", `{"exportChat":"{\"format\": \"berth.chat/1\"}"}`)
	f.Data("ImportChat", `{"payload":{"chat":`+chat+`}}`)
	f.Data("DeleteChat", `{"payload":{"id":"c"}}`)
	for line, want := range map[string]string{
		"ls --search star": "Stars", "show c": "> why?\n> really\n\n[llama, done]\none\n[2Jtwo\n", "export c": `"berth.chat/1"`, "rm c": "",
	} {
		if got := f.Run(append([]string{"chats"}, strings.Fields(line)...)...); got.Code != 0 || !strings.Contains(got.Out, want) || strings.Contains(got.Out, "\x1b") {
			t.Errorf("chats %s: %+v", line, got)
		}
	}
	if got := f.RunWith(map[string]string{"BERTH_TOKEN": "secret", "BERTH_URL": f.URL}, `{}`, "chats", "import", "-"); got.Code != 0 || !strings.Contains(got.Out, "Stars") {
		t.Errorf("import: %+v", got)
	}
}
