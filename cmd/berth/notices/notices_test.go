package notices

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m) }

func TestNotices(t *testing.T) {
	f := clitest.New(t, func(a *cli.App) []*cobra.Command { return []*cobra.Command{Command(a)} })
	channel := `{"id":"c","type":"WEBHOOK","name":"home","host":"example.org","cluster":false,"enabled":true,"disabledReason":"","failingSince":null,"createdAt":"2026-03-01T12:00:00Z"}`
	delivery := `{"id":"d","type":"WEBHOOK","kind":"SESSION_FAILED","status":"DEAD","attempts":3,"message":"status 503","channelID":"c","createdAt":"2026-03-01T12:00:00Z","sentAt":null}`
	settings := `{"language":"EN","mail":true,"kinds":[{"kind":"QUOTA","severity":"WARNING","forAdmins":false,"routes":["PAGE","EMAIL"]},{"kind":"SESSION_ENDED","severity":"INFO","forAdmins":false,"routes":[]}]}`
	f.Data("Notices", `{"notices":`+clitest.Edges(`{"id":"n","kind":"SESSION_FAILED","severity":"ERROR","text":"Session a\u001b[2J has failed.","parameters":{"name":"a"},"count":1,"subjectID":"s","readAt":null,"createdAt":"2026-03-01T12:00:00Z"}`)+`}`)
	f.Data("MarkNoticesRead", `{"payload":{"marked":2}}`)
	f.Data("NoticeSettings", `{"noticeSettings":`+settings+`}`)
	f.Data("NoticeChannels", `{"noticeChannels":[`+channel+`]}`)
	f.Data("NoticeDeliveries", `{"noticeDeliveries":`+clitest.Edges(delivery)+`}`)
	f.Data("ResendNoticeDelivery", `{"payload":{"delivery":`+delivery+`}}`)
	f.Data("CreateNoticeChannel", `{"payload":{"channel":`+channel+`,"secret":"whsec_X"}}`)
	f.Data("UpdateNoticeChannel", `{"payload":{"channel":`+channel+`}}`)
	f.Data("DeleteNoticeChannel", `{"payload":{"id":"c"}}`)
	f.Data("TestNoticeChannel", `{"payload":{"delivered":false,"message":"connection refused"}}`)
	var chosen string
	f.Answer["SetNoticeSettings"] = func(vars json.RawMessage) string {
		chosen = string(vars)
		return `{"payload":{"settings":` + settings + `}}`
	}
	for line, want := range map[string]string{
		"ls --unread": "Session a[2J has failed.", "settings": "page, email", "channel ls": "example.org",
		"channel create home https://example.org/x": "whsec_X", "channel update home --disable": "home", "channel rm home": "",
		"deliveries --status dead": "status 503", "resend d": "dead", "read": "",
	} {
		if got := f.Run(append([]string{"notices"}, strings.Fields(line)...)...); got.Code != 0 || !strings.Contains(got.Out, want) || strings.Contains(got.Out, "\x1b") {
			t.Errorf("notices %s: %+v", line, got)
		}
	}
	for line, want := range map[string]string{
		"set session-ended page,email": `"routes":["PAGE","EMAIL"]`, "set quota none": `"routes":[]`, "set quota default": `"kind":"QUOTA"`, "set --language ja": `"language":"JA"`,
	} {
		if got := f.Run(append([]string{"notices"}, strings.Fields(line)...)...); got.Code != 0 || !strings.Contains(chosen, want) || line == "set quota default" && strings.Contains(chosen, `"routes":[`) {
			t.Errorf("notices %s: %+v, %s", line, got, chosen)
		}
	}
	if got := f.Run("notices", "channel", "test", "home"); got.Code == 0 || !strings.Contains(got.Errors, "connection refused") {
		t.Errorf("a test that fails: %+v", got)
	}
}
