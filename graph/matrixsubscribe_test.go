package graph_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/manager/managertest"
	"github.com/berthhq/berth/manager/stats"
)

// followed has the arguments and the selection of each subscription.
var followed = map[string]struct{ kind, argument, selects string }{
	"agentChanged":        {"Agent", "id", "{ id }"},
	"sessionChanged":      {"Session", "id", "{ id }"},
	"vfolderChanged":      {"Vfolder", "id", "{ id }"},
	"vfolderShareChanged": {"VfolderShare", "id", "{ id }"},
	"taskChanged":         {"Task", "id", "{ id }"},
	"deploymentChanged":   {"Deployment", "id", "{ id }"},
	"kernelLogs":          {"Kernel", "kernel", "{ offset }"},
	"kernelStats":         {"Session", "session", "{ kernelId }"},
	"chatUpdates":         {"Chat", "id", "{ chat { id } answer { id } }"},
	"queueChanged":        {"ResourceGroup", "resourceGroup", "{ totalCount }"},
}

// subscriptions adds the section of the subscriptions. Its manager runs the background loops.
func (x *table) subscriptions() {
	x.report.section("subscription")
	m, bus := x.Start(x.t), x.Bus(x.t)
	defer m.Stop()
	sockets := map[*column]*socket{}
	for _, c := range x.columns {
		sockets[c] = open(x.t, m.As(x.t, c.user))
	}
	for _, f := range schema().Subscription.Fields {
		if f.Name[0] == '_' {
			continue
		}
		if f.Name == "noticeAdded" { // without an argument: TestNoticesArePersonal
			continue
		}
		how, ok := followed[f.Name]
		if !ok {
			x.t.Errorf("%s has no row in the access matrix", f.Name)
			continue
		}
		row := x.report.row(f.Name)
		for _, c := range x.columns {
			cells := ""
			for _, scope := range matrixScopes {
				owner, _, _ := x.at(c, scope)
				k := x.kits[owner.ID]
				x.n++
				id := fmt.Sprint(x.n)
				sockets[c].subscribe(id, fmt.Sprintf("subscription($id: ID!) { %s(%s: $id) %s }", f.Name, how.argument, how.selects),
					managertest.Vars{"id": k[how.kind]})
				cells += x.first(bus, sockets[c], id, k["Kernel"])
			}
			row.add(cells)
		}
	}
}

// first returns the verdict on the first event of a subscription, while samples of a kernel are
// published.
func (x *table) first(bus *event.Bus, s *socket, id string, kernel uuid.UUID) string {
	sample, err := json.Marshal(report.Stats{At: time.Now()})
	if err != nil {
		x.t.Fatal(err)
	}
	done := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			bus.Publish(x.t.Context(), event.Event{Topic: stats.Topic, ID: kernel, Data: sample})
			select {
			case <-done:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	defer func() { close(done); <-stopped }()
	for {
		got := s.next()
		if got.ID != id {
			continue // event of an earlier subscription
		}
		var answer struct{ Errors managertest.Errors }
		switch got.Type {
		case "error":
			err = json.Unmarshal(got.Payload, &answer.Errors)
		case "next":
			err = json.Unmarshal(got.Payload, &answer)
			s.send(message{Type: "complete", ID: id})
		default:
			x.t.Errorf("%s %s", got.Type, got.Payload)
		}
		if err != nil {
			x.t.Fatal(err)
		}
		if len(answer.Errors) > 0 && strings.Contains(answer.Errors.String(), "Unknown") {
			x.t.Error(answer.Errors)
		}
		return verdictOf(answer.Errors.Code())
	}
}
