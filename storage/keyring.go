package storage

import (
	"slices"
	"sync"

	"github.com/berthhq/berth/internal/ticket"
)

// keyring gathers the ticket keys of all managers that watch. The keys of a
// manager that went away stay good until another one comes: transfers must
// not fail while managers restart.
type keyring struct {
	verifier *ticket.Verifier

	mu      sync.Mutex
	holders []*holder
}

// holder is one watching manager.
type holder struct {
	keys [][]byte
	gone bool
}

func (k *keyring) join(keys [][]byte) (leave func(), err error) {
	if err := new(ticket.Verifier).SetKeys(keys); err != nil {
		return nil, err
	}
	h := &holder{keys: keys}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.holders = slices.DeleteFunc(k.holders, func(h *holder) bool { return h.gone })
	k.holders = append(k.holders, h)
	var all [][]byte
	for _, h := range k.holders {
		all = append(all, h.keys...)
	}
	if err := k.verifier.SetKeys(all); err != nil {
		return nil, err
	}
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		h.gone = true
	}, nil
}
