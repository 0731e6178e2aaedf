package inference

import (
	"container/list"
	"hash/maphash"
	"iter"
	"sync"
)

const (
	// prefixBlock is the size of a block of a prompt, in bytes: about 16 tokens of English text, the
	// usual size of a block in the caches of engines.
	prefixBlock = 64
	// maxPrefixBlocks limits the blocks of one request that are looked up.
	maxPrefixBlocks = 1024
	// maxPrefixes limits the blocks that a model remembers.
	maxPrefixes = 1 << 16
)

// prefixes knows which replica got a prompt with a prefix last. Blocks are hashed with the text before
// them and the tenant, so that no tenant learns of another's prompts from the choice.
type prefixes struct {
	seed maphash.Seed

	mu    sync.Mutex
	order *list.List // of owned; the front was used last
	known map[uint64]*list.Element
}

type owned struct {
	block   uint64
	replica string
}

func newPrefixes() *prefixes {
	return &prefixes{seed: maphash.MakeSeed(), order: list.New(), known: map[uint64]*list.Element{}}
}

// blocks returns the hashes of a text's complete blocks.
func (p *prefixes) blocks(tenant string, text []byte) []uint64 {
	n := min(len(text)/prefixBlock, maxPrefixBlocks)
	if n == 0 {
		return nil
	}
	var h maphash.Hash
	h.SetSeed(p.seed)
	h.WriteString(tenant)
	h.WriteByte(0)
	out := make([]uint64, n)
	for i := range out {
		h.Write(text[i*prefixBlock : (i+1)*prefixBlock])
		out[i] = h.Sum64()
	}
	return out
}

// owners yields the replicas of the longest known prefixes, the longest first.
func (p *prefixes) owners(blocks []uint64) iter.Seq[string] {
	return func(yield func(string) bool) {
		last := ""
		for i := len(blocks) - 1; i >= 0; i-- {
			p.mu.Lock()
			e, is := p.known[blocks[i]]
			owner := ""
			if is {
				owner = e.Value.(owned).replica
			}
			p.mu.Unlock()
			if owner == "" || owner == last {
				continue
			}
			if last = owner; !yield(owner) {
				return
			}
		}
	}
}

func (p *prefixes) add(blocks []uint64, replica string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range blocks {
		if e, is := p.known[b]; is {
			e.Value = owned{b, replica}
			p.order.MoveToFront(e)
			continue
		}
		p.known[b] = p.order.PushFront(owned{b, replica})
	}
	for p.order.Len() > maxPrefixes {
		delete(p.known, p.order.Remove(p.order.Back()).(owned).block)
	}
}
