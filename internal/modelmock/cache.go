package modelmock

import (
	"container/list"
	"hash/maphash"
	"sync"
)

// cache is a prefix cache in blocks of tokens. A block is known by the hash of all tokens up to its
// end, so a hit needs the whole prefix. The least recently used block is evicted.
type cache struct {
	block, blocks int
	seed          maphash.Seed

	mu    sync.Mutex
	order *list.List // of uint64; the front was used last
	known map[uint64]*list.Element
}

func newCache(block, blocks int) *cache {
	return &cache{block: block, blocks: blocks, seed: maphash.MakeSeed(), order: list.New(), known: map[uint64]*list.Element{}}
}

// take returns how many of the tokens are in the cache, and adds all their complete blocks.
func (c *cache) take(tokens []string) (hit int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var h maphash.Hash
	h.SetSeed(c.seed)
	missed := false
	for i, token := range tokens {
		h.WriteString(token)
		h.WriteByte(0)
		if (i+1)%c.block != 0 {
			continue
		}
		key := h.Sum64()
		if e, is := c.known[key]; is {
			c.order.MoveToFront(e)
			if !missed {
				hit = i + 1
			}
			continue
		}
		missed = true
		c.known[key] = c.order.PushFront(key)
	}
	for c.order.Len() > c.blocks {
		last := c.order.Back()
		delete(c.known, c.order.Remove(last).(uint64))
	}
	return hit
}

// use returns the used fraction of the blocks.
func (c *cache) use() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return float64(c.order.Len()) / float64(max(c.blocks, 1))
}

func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.order.Init()
	clear(c.known)
}
