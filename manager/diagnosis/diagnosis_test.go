package diagnosis_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/manager/managertest"
)

// result is a finding as the API has it.
type result struct{ Check, Severity, Subject, Text, Consequence, Fix string }

const query = `{ diagnosis { findings { check severity subject text consequence fix } } }`

// Every check finds its fault, names the object, and says what follows and what to do. Without faults it says what was found.
func TestFaultsAreFound(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Start(t)
	root := m.As(t, w.Superadmin)
	ask := func() []result {
		var got struct{ Diagnosis struct{ Findings []result } }
		root.Must(t, query, nil, &got)
		return got.Diagnosis.Findings
	}
	of := func(all []result, check string) (out []result) {
		for _, f := range all {
			if f.Check == check {
				out = append(out, f)
			}
		}
		return out
	}
	managertest.Eventually(t, "a manager leads", func() bool { return of(ask(), "LEADER")[0].Severity == "FINE" })
	all := ask()
	for _, check := range []string{"DATABASE", "REDIS", "ETCD", "RECOVERY", "CERTIFICATES", "CONDITIONS", "PLUGINS", "VOLUMES", "TASKS", "RETENTION", "SESSIONS"} {
		if list := of(all, check); len(list) != 1 || list[0].Severity != "FINE" || list[0].Text == "" {
			t.Errorf("%s: %+v", check, list)
		}
	}

	ctx := w.System(t)
	group := w.Client.ResourceGroup.Create().SetName("lab").SaveX(ctx)
	ago := time.Now().Add(-time.Hour)
	w.Client.Agent.Create().SetName("lost-1").SetResourceGroup(group).SetStatus("lost").SetLastSeenAt(ago).ExecX(ctx)
	w.Client.Agent.Create().SetName("old-1").SetResourceGroup(group).SetVersion("0.0.1").
		SetConditions([]report.Condition{{Type: "disk_pressure", Status: true, Reason: "1 GiB of 20 GiB free"}}).
		SetPlugins([]report.Plugin{{Name: "cuda", State: "backoff", Message: "exit status 1"}, {Name: "rocm", State: "running", Checks: []report.PluginCheck{
			{Name: "driver", Level: report.CheckError, Text: "no driver"}, {Name: "mps", Level: report.CheckWarning, Text: "no MPS"}, {Name: "x", Level: report.CheckOK}}}}).ExecX(ctx)
	proxy := w.Client.StorageProxy.Create().SetName("storage-1").SetLastSeenAt(ago).SaveX(ctx)
	w.Client.Volume.Create().SetName("full").SetProxyID(proxy.ID).SetHealth("healthy").SetTotalBytes(100 << 30).SetUsedBytes(95 << 30).ExecX(ctx)
	w.Client.Volume.Create().SetName("broken").SetProxyID(proxy.ID).SetHealth("unavailable").SetHealthMessage("timeout").ExecX(ctx)
	w.Client.Task.Create().SetKind("purge_user").SetInput([]byte("{}")).SetStatus("failed").SetMessage("the storage is away").SetEndedAt(time.Now()).ExecX(ctx)
	w.Client.Registry.Create().SetName("hub").SetHost("hub.example.org").SetScanEvery(3600).SetLastScannedAt(ago.Add(-24 * time.Hour)).ExecX(ctx)
	all = ask()
	for _, want := range []result{
		{Check: "AGENTS", Severity: "FAULT", Subject: "lost-1", Text: "1h0m"}, {Check: "AGENTS", Severity: "NOTICE", Subject: "old-1", Text: "0.0.1"},
		{Check: "CONDITIONS", Severity: "WARNING", Subject: "old-1", Text: "1 GiB of 20 GiB free"},
		{Check: "PLUGINS", Severity: "FAULT", Subject: "old-1", Text: "cuda"}, {Check: "PLUGINS", Severity: "FAULT", Subject: "old-1", Text: "no driver"},
		{Check: "PLUGINS", Severity: "WARNING", Subject: "old-1", Text: "no MPS"},
		{Check: "STORAGE", Severity: "FAULT", Subject: "storage-1", Text: "1h0m"},
		{Check: "VOLUMES", Severity: "WARNING", Subject: "full", Text: "95 %"}, {Check: "VOLUMES", Severity: "FAULT", Subject: "broken", Text: "timeout"},
		{Check: "TASKS", Severity: "WARNING", Subject: "purge_user", Text: "the storage is away"},
		{Check: "REGISTRIES", Severity: "WARNING", Subject: "hub", Text: "last scanned"},
		{Check: "IMAGES", Severity: "WARNING", Text: "no public image"}, {Check: "GATEWAYS", Severity: "WARNING", Text: "no gateway"},
		{Check: "MANAGERS", Severity: "NOTICE", Text: "one manager"},
	} {
		found := slices.ContainsFunc(all, func(f result) bool {
			return f.Check == want.Check && f.Severity == want.Severity && f.Subject == want.Subject && strings.Contains(f.Text, want.Text) && f.Consequence != "" && f.Fix != ""
		})
		if !found {
			t.Errorf("not found: %+v in %+v", want, of(all, want.Check))
		}
	}
	if !slices.IsSortedFunc(all, func(a, b result) int {
		order := []string{"FAULT", "WARNING", "NOTICE", "FINE"}
		return slices.Index(order, a.Severity) - slices.Index(order, b.Severity)
	}) {
		t.Errorf("the worst is not the first: %+v", all)
	}
	if errs := m.As(t, w.A.Member).Ask(t, query, nil, nil); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("a member: %s", errs)
	}
}
