package store

import (
	"encoding/binary"
	"time"

	"github.com/google/uuid"
)

// IDBefore returns an id that sorts before the ids of all entities that are created at or after a time, because ids begin with it. A
// range of ids is a range of time that uses the index of the primary key.
func IDBefore(at time.Time) (out uuid.UUID) {
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(max(0, at.UnixMilli())))
	copy(out[:6], ms[2:])
	return out
}
