package store

import (
	"bytes"
	"maps"
	"slices"

	"github.com/google/uuid"
)

// IDs returns the ids of a set in order, so that statements are the same each time and rows are
// locked in one order.
func IDs[V any](set map[uuid.UUID]V) []uuid.UUID {
	return slices.SortedFunc(maps.Keys(set), func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
}
