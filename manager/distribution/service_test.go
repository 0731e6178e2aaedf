package distribution

import (
	"log/slog"
	"testing"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/ticket"
)

const (
	imageA = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	layerA = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func service(t *testing.T) (*Service, *ticket.Verifier) {
	t.Helper()
	ring, err := ticket.LoadRing(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	verifier := &ticket.Verifier{}
	if err := verifier.SetKeys(ring.PublicKeys()); err != nil {
		t.Fatal(err)
	}
	s := New(ring, slog.New(slog.NewTextHandler(t.Output(), nil)))
	for _, agent := range []string{"node-1", "node-2", "node-3"} {
		s.Report(agent, &agentpb.Report{Layers: "10.0.0.1:8426"})
	}
	return s, verifier
}

// TestOnlyPullingAgentsGetTickets is a row of docs/security.md.
func TestOnlyPullingAgentsGetTickets(t *testing.T) {
	t.Parallel()
	s, verifier := service(t)
	ask := func(agent, image, part string) *agentpb.LayerAnswer {
		return s.answer(agent, &agentpb.LayerQuestion{Id: 7, Image: image, Digest: part})
	}
	end := s.Pulling("node-1", imageA)
	if a := ask("node-1", imageA, layerA); a.Id != 7 || a.Agent != "" || a.Ticket != "" {
		t.Errorf("the first agent got %v, want the registry", a)
	}
	end2 := s.Pulling("node-2", imageA)
	a := ask("node-2", imageA, layerA)
	if a.Agent != "node-1" {
		t.Fatalf("the second agent got %v, want node-1", a)
	}
	claims, err := verifier.Verify(a.Ticket, ticket.Layers)
	if err != nil || claims.User != "node-2" || claims.Path != imageA {
		t.Errorf("ticket: %+v, %v", claims, err)
	}
	if _, err := verifier.Verify(a.Ticket, ticket.Download); err == nil {
		t.Error("the ticket is valid for downloads of files")
	}
	for name, got := range map[string]*agentpb.LayerAnswer{
		"an agent that pulls nothing":    ask("node-3", imageA, layerA),
		"an agent that pulls another":    ask("node-2", layerA, layerA),
		"a digest with a path":           ask("node-2", imageA, "sha256:../../etc/passwd"),
		"a digest of another algorithm":  ask("node-2", imageA, "sha512:aa"),
		"the agent after its pull ended": func() *agentpb.LayerAnswer { end2(); return ask("node-2", imageA, layerA) }(),
	} {
		if got.Ticket != "" || got.Agent != "" {
			t.Errorf("%s got %v", name, got)
		}
	}
	end()
	if n := len(s.known.parts); n != 0 {
		t.Errorf("%d parts are known after all pulls have ended", n)
	}
}

func TestAgentsCannotClaimPartsThatTheyDidNotAskFor(t *testing.T) {
	t.Parallel()
	s, _ := service(t)
	defer s.Pulling("node-1", imageA)()
	s.end("node-1", &agentpb.LayerQuestion{Image: imageA, Digest: layerA, End: agentpb.LayerQuestion_PRESENT})
	defer s.Pulling("node-2", imageA)()
	if a := s.answer("node-2", &agentpb.LayerQuestion{Id: 1, Image: imageA, Digest: layerA}); a.Agent != "" {
		t.Errorf("source is %s, which never asked for the part", a.Agent)
	}
}
