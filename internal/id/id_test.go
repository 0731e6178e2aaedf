package id_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/id"
)

// An id contains its kind, keeps the version and variant of UUIDs, and sorts by time.
func TestKinds(t *testing.T) {
	for k := id.Domain; k != 0; k++ { // to 255
		if k == 62 {
			continue // marks the larger kinds
		}
		u := id.New(k)
		if id.KindOf(u) != k || u.Version() != 7 || u.Variant() != uuid.RFC4122 {
			t.Fatalf("kind %d: %s is of kind %d, version %d, variant %s", k, u, id.KindOf(u), u.Version(), u.Variant())
		}
		if got, err := id.Parse(k, u.String()); err != nil || got != u {
			t.Fatalf("kind %d: %v, %v", k, got, err)
		}
		if _, err := id.Parse(k+1, u.String()); err == nil {
			t.Fatalf("an id of kind %d is read as one of kind %d", k, k+1)
		}
	}
}
