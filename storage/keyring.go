package storage

import (
	"slices"
	"sync"

	"github.com/berthhq/berth/internal/ticket"
)

// keyring gathers the ticket keys of all managers that watch. The keys of the last
// manager that went away stay good until another one comes: transfers must not
// fail while managers restart.
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

// empty reports whether no manager has come yet.
func (k *keyring) empty() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.holders) == 0
}

func (k *keyring) join(keys [][]byte) (leave func(), err error) {
	if err := new(ticket.Verifier).SetKeys(keys); err != nil {
		return nil, err
	}
	h := &holder{keys: keys}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.holders = append(k.holders, h)
	k.settle()
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		h.gone = true
		k.settle()
	}, nil
}

// settle lets the keys count of those who are here or, when no one is, of those who
// were here last.
func (k *keyring) settle() {
	if slices.ContainsFunc(k.holders, func(h *holder) bool { return !h.gone }) {
		k.holders = slices.DeleteFunc(k.holders, func(h *holder) bool { return h.gone })
	}
	var all [][]byte
	for _, h := range k.holders {
		all = append(all, h.keys...)
	}
	_ = k.verifier.SetKeys(all) // join has checked them
}
