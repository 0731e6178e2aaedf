package distribution

import (
	"cmp"
	"hash/fnv"
	"slices"
	"sync"
)

// fanOut is the number of agents that an agent sends the same part to at a time. With three, a part reaches
// 120 agents in four steps.
const fanOut = 3

// part is the state of one part of an image in the cluster.
type part struct {
	size    int64           // 0 = not known yet
	holders map[string]bool // agents that have it
	// fetches has the agents that are fetching it, with their sources; "" is the registry.
	fetches map[string]string
}

// tracker is the knowledge about parts. It does no I/O.
type tracker struct {
	mu       sync.Mutex
	address  map[string]string          // of agents that serve others
	complete map[string]map[string]bool // digests of complete parts, by agent
	parts    map[string]*part           // by digest
	images   map[string][]string        // digests of the parts of an image, by its reference
}

func newTracker() *tracker {
	return &tracker{address: map[string]string{}, complete: map[string]map[string]bool{}, parts: map[string]*part{}, images: map[string][]string{}}
}

// sized is a part with its size.
type sized struct {
	digest string
	size   int64
}

// report replaces what is known about an agent: its address, and the parts of its images by their references.
func (t *tracker) report(agent, address string, images map[string][]sized) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := map[string]bool{}
	for image, list := range images {
		names := make([]string, 0, len(list))
		for _, p := range list {
			now[p.digest] = true
			one := t.part(p.digest)
			one.size = p.size
			one.holders[agent] = true
			names = append(names, p.digest)
		}
		t.images[image] = names
	}
	for digest := range t.complete[agent] {
		if !now[digest] {
			t.lose(agent, digest)
		}
	}
	t.complete[agent] = now
	if address == "" {
		delete(t.address, agent)
	} else {
		t.address[agent] = address
	}
}

// gone forgets an agent that is no longer connected.
func (t *tracker) gone(agent string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for digest := range t.complete[agent] {
		t.lose(agent, digest)
	}
	for digest, p := range t.parts {
		delete(p.fetches, agent)
		t.tidy(digest, p)
	}
	delete(t.complete, agent)
	delete(t.address, agent)
}

// find returns the agent from which another agent should fetch a part, and "" for the registry, and remembers
// the answer. It prefers agents that have the part to those that are fetching it, then those that send less.
// An agent never becomes the source of an agent that it fetches from itself, not even over others.
func (t *tracker) find(agent, digest string, failed []string) (source, address string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.part(digest)
	children := map[string]int{}
	for child, from := range p.fetches {
		if child != agent && from != "" {
			children[from]++
		}
	}
	type candidate struct {
		name             string
		complete         bool
		children, spread int
	}
	var list []candidate
	consider := func(name string, complete bool) {
		if name == agent || t.address[name] == "" || children[name] >= fanOut || slices.Contains(failed, name) || !complete && p.follows(name, agent) {
			return
		}
		list = append(list, candidate{name, complete, children[name], order(agent, name)})
	}
	for name := range p.holders {
		consider(name, true)
	}
	for name := range p.fetches {
		if !p.holders[name] {
			consider(name, false)
		}
	}
	if len(list) == 0 {
		p.fetches[agent] = ""
		return "", ""
	}
	best := slices.MinFunc(list, func(a, b candidate) int {
		if a.complete != b.complete {
			if a.complete {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.children, b.children), cmp.Compare(a.spread, b.spread), cmp.Compare(a.name, b.name))
	})
	p.fetches[agent] = best.name
	return best.name, t.address[best.name]
}

// order spreads agents that ask at the same time over equal sources.
func order(agent, source string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(agent + " " + source))
	return int(h.Sum32())
}

// follows reports whether an agent fetches from another one, also over others.
func (p *part) follows(agent, other string) bool {
	for range len(p.fetches) + 1 {
		if agent == other {
			return true
		}
		from, ok := p.fetches[agent]
		if !ok || from == "" || p.holders[agent] {
			return false
		}
		agent = from
	}
	return true
}

// ended ends a fetch.
func (t *tracker) ended(agent, digest string, present bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.parts[digest]
	if p == nil {
		return
	}
	delete(p.fetches, agent)
	if present {
		p.holders[agent] = true
		if t.complete[agent] == nil {
			t.complete[agent] = map[string]bool{}
		}
		t.complete[agent][digest] = true
	}
	t.tidy(digest, p)
}

// stopped ends all fetches of an agent for which it has not reported an end.
func (t *tracker) stopped(agent string, digests map[string]bool) {
	for digest := range digests {
		t.mu.Lock()
		if p := t.parts[digest]; p != nil {
			delete(p.fetches, agent)
			t.tidy(digest, p)
		}
		t.mu.Unlock()
	}
}

// missing returns the bytes of an image that an agent lacks; known is false if no agent has reported the image.
func (t *tracker) missing(agent, reference string) (bytes int64, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, digest := range t.images[reference] {
		p := t.parts[digest]
		if p == nil {
			delete(t.images, reference) // no agent has it
			return 0, false
		}
		if !p.holders[agent] {
			bytes += p.size
		}
	}
	return bytes, len(t.images[reference]) > 0
}

func (t *tracker) part(digest string) *part {
	p := t.parts[digest]
	if p == nil {
		p = &part{holders: map[string]bool{}, fetches: map[string]string{}}
		t.parts[digest] = p
	}
	return p
}

// lose notes that an agent no longer has a part.
func (t *tracker) lose(agent, digest string) {
	if p := t.parts[digest]; p != nil {
		delete(p.holders, agent)
		t.tidy(digest, p)
	}
}

// tidy forgets a part that no agent has or is fetching.
func (t *tracker) tidy(digest string, p *part) {
	if len(p.holders) == 0 && len(p.fetches) == 0 {
		delete(t.parts, digest)
	}
}
