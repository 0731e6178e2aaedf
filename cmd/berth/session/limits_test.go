package session

import (
	"testing"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

func TestAllLimitsAreListed(t *testing.T) {
	f := newServer(t)
	f.Data("CreateSession", `{"code":"RESOURCE_EXHAUSTED","field":"slots","limit":"2","message":"a; b","limits":[
		{"scope":"PROJECT","holder":"thesis","policy":"student","what":"cpu","used":"1.5","requested":"4","limit":"2","resourceGroup":"","withinProject":""},
		{"scope":"USER","holder":"kim","policy":"big","what":"mem","used":"0","requested":"8589934592","limit":"2147483648","resourceGroup":"lab","withinProject":"thesis"},
		{"scope":"DOMAIN","holder":"vision","policy":"house","what":"pending sessions","used":"3","requested":"1","limit":"3","resourceGroup":"","withinProject":""}]}`)
	r := f.Run("session", "create", "python:3", "--cpu", "4", "--mem", "8g")
	if r.Code != cli.ExitInvalid {
		t.Errorf("exit code %d", r.Code)
	}
	clitest.Golden(t, "limits-reached", r.Out+r.Errors)
}
