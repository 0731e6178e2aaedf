package session

import (
	"testing"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

func TestDryRun(t *testing.T) {
	f := newServer(t)
	f.Data("DryRun", `{"dryRun":{"verdict":"NOW","refusals":[],"resourceGroup":{"id":"g","name":"default"},"agents":[{"id":"a","name":"node-1"}],"pending":null}}`)
	r := f.Run("session", "create", "python:3.11", "--dry-run")
	if want := "It would start at once in the resource group default, on node-1.\n"; r.Code != 0 || r.Out != want || r.Errors != "" {
		t.Errorf("%+v", r)
	}
	f.Data("DryRun", `{"dryRun":{"verdict":"WAITS","refusals":[],"resourceGroup":{"id":"g","name":"default"},"agents":[],`+pendingReport+`}}`)
	if r = f.Run("session", "create", "python:3.11", "--dry-run"); r.Code != 0 {
		t.Errorf("%+v", r)
	}
	clitest.Golden(t, "dry-run", r.Out)
	f.Data("DryRun", `{"dryRun":{"verdict":"REFUSED","refusals":[{"code":"INVALID_ARGUMENT","message":"must have 1 to 64 characters","field":"name","limit":"1..64"}],"agents":[],"pending":null}}`)
	r = f.Run("session", "create", "python:3.11", "--dry-run")
	if want := "It would be refused:\n  name: must have 1 to 64 characters\n"; r.Code != cli.ExitInvalid || r.Out != want {
		t.Errorf("%+v", r)
	}
	f.Data("DryRun", `{"dryRun":{"verdict":"NEVER","refusals":[{"code":"INVALID_ARGUMENT","message":"No machine of the resource group has 4 CPU cores: the most that any machine has is 2.","field":"slots.cpu","limit":"2"}],"agents":[],"pending":null}}`)
	r = f.Run("session", "create", "python:3.11", "--cpu", "4", "--dry-run")
	if want := "No machine could ever run it:\n  slots.cpu: No machine of the resource group has 4 CPU cores: the most that any machine has is 2.\n"; r.Code != cli.ExitInvalid || r.Out != want {
		t.Errorf("%+v", r)
	}
	if n := f.Count("CreateSession"); n > 0 {
		t.Errorf("%d sessions were created", n)
	}
}
