package distribution

import (
	"fmt"
	"testing"
)

const digestA = "sha256:aaaa"

// cluster returns the knowledge about n agents that can serve others.
func cluster(n int) *tracker {
	t := newTracker()
	for i := range n {
		t.report(name(i), "10.0.0.1:"+fmt.Sprint(i+1), nil)
	}
	return t
}

func name(i int) string { return fmt.Sprintf("node-%03d", i) }

func TestOneAgentFetchesFromTheRegistry(t *testing.T) {
	t.Parallel()
	const n = 200
	c := cluster(n)
	children, registry := map[string]int{}, 0
	source := map[string]string{}
	for i := range n {
		from, address := c.find(name(i), digestA, nil)
		if (from == "") != (address == "") {
			t.Fatalf("source %q with address %q", from, address)
		}
		if from == "" {
			registry++
		}
		if from != "" && source[from] == "" && from != name(0) {
			t.Errorf("%s fetches from %s, which is not fetching", name(i), from)
		}
		children[from]++
		source[name(i)] = from
		if children[from] > fanOut && from != "" {
			t.Errorf("%s sends to %d agents", from, children[from])
		}
	}
	if registry != 1 {
		t.Errorf("%d agents were sent to the registry, not one", registry)
	}
}

func TestHoldersArePreferred(t *testing.T) {
	t.Parallel()
	c := cluster(5)
	c.report(name(4), "10.0.0.1:5", map[string][]sized{"image:1": {{digestA, 10}}})
	c.find(name(0), digestA, []string{name(4)}) // from the registry
	for i := 1; i <= fanOut; i++ {
		if from, _ := c.find(name(i), digestA, nil); from != name(4) {
			t.Errorf("%s fetches from %q, not from the agent that has the part", name(i), from)
		}
	}
}

func TestNoAgentFetchesFromItsFollower(t *testing.T) {
	t.Parallel()
	c := cluster(3)
	c.find(name(0), digestA, nil)
	c.find(name(1), digestA, nil)                             // from 0
	c.find(name(2), digestA, []string{name(0)})               // from 1
	if from, _ := c.find(name(0), digestA, nil); from != "" { // its source has failed
		t.Errorf("%s fetches from %s, which waits for it", name(0), from)
	}
	if from, _ := c.find(name(1), digestA, []string{name(0)}); from != "" {
		t.Errorf("%s fetches from %s, which waits for it", name(1), from)
	}
}

func TestFailedAgentsAreNotNamed(t *testing.T) {
	t.Parallel()
	c := cluster(3)
	c.ended(name(0), digestA, true)
	c.find(name(0), digestA, nil)
	c.ended(name(0), digestA, true)
	if from, _ := c.find(name(1), digestA, nil); from != name(0) {
		t.Fatalf("source is %q", from)
	}
	if from, _ := c.find(name(1), digestA, []string{name(0)}); from != "" {
		t.Errorf("%s was named although it failed", from)
	}
	c.gone(name(0))
	if from, _ := c.find(name(2), digestA, []string{name(1)}); from != "" {
		t.Errorf("%s was named although it is gone", from)
	}
}

func TestAgentsWithoutAddressAreNotNamed(t *testing.T) {
	t.Parallel()
	c := cluster(2)
	c.report(name(0), "", map[string][]sized{"image:1": {{digestA, 10}}})
	if from, _ := c.find(name(1), digestA, nil); from != "" {
		t.Errorf("%s was named although others cannot reach it", from)
	}
}

func TestMissingBytes(t *testing.T) {
	t.Parallel()
	c := cluster(3)
	c.report(name(0), "10.0.0.1:1", map[string][]sized{"image:1": {{digestA, 10}, {"sha256:b", 5}}})
	c.report(name(1), "10.0.0.1:2", map[string][]sized{"other:1": {{"sha256:b", 5}}})
	for agent, want := range map[string]int64{name(0): 0, name(1): 10, name(2): 15} {
		if lacks, known := c.missing(agent, "image:1"); lacks != want || !known {
			t.Errorf("%s lacks %d bytes (known: %t), want %d", agent, lacks, known, want)
		}
	}
	if _, known := c.missing(name(0), "unknown:1"); known {
		t.Error("an image that no agent has is known")
	}
}

func TestNothingIsRememberedOfAgentsThatAreGone(t *testing.T) {
	t.Parallel()
	c := cluster(3)
	c.report(name(0), "10.0.0.1:1", map[string][]sized{"image:1": {{digestA, 10}}})
	c.find(name(1), digestA, nil)
	c.find(name(2), "sha256:b", nil)
	c.report(name(0), "10.0.0.1:1", nil)
	for i := range 3 {
		c.gone(name(i))
	}
	if len(c.parts)+len(c.complete)+len(c.address) > 0 {
		t.Errorf("left: %v %v %v", c.parts, c.complete, c.address)
	}
}
