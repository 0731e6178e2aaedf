package inference

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berthhq/berth/internal/modelmock"
)

// A group gets its share of the requests, also if all of them begin with the same text and another group has more replicas.
func TestShareOfAGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4, modelmock.Config{})
	var targets []Target
	for i, r := range w.model.set.replicas {
		one := r.Target
		one.Group, one.Weight = 1, 30
		if i == 3 {
			one.Group, one.Weight = 2, 10
		}
		targets = append(targets, one)
	}
	w.model.Update(targets...)
	const all = 600
	share := 0
	for i := range all {
		body := fmt.Sprintf(`{"model":"mock","max_tokens":1,"prompt":"%s %d"}`, strings.Repeat("the same words ", 20), i)
		if w.ask(t.Context(), "/v1/completions", body).Header.Get("Berth-Replica") == "r3" {
			share++
		}
	}
	if share < 30 || share > 90 { // 60 ± 4 standard deviations
		t.Errorf("%d of %d requests, want about a tenth", share, all)
	}
}
