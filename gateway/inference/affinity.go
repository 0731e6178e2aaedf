package inference

import (
	"hash/maphash"
	"net/http"
)

const (
	// affinityHeader names the session of a request.
	affinityHeader = "Berth-Affinity"
	// maxAffinity limits the name of a session, in bytes.
	maxAffinity = 256
)

// affinityOf returns the name of a request's session: that of the header, or otherwise prompt_cache_key or user of the body; "" if it
// has none. The body is the client's and can have a long text there, which is no error.
func affinityOf(req *http.Request, b *body) (string, error) {
	name := req.Header.Get(affinityHeader)
	if len(name) > maxAffinity {
		return "", invalid("%s has %d bytes, more than %d", affinityHeader, len(name), maxAffinity)
	}
	if name != "" {
		return name, nil
	}
	return b.session, nil
}

// session returns the hash of a session. It is that of no prompt, because no prompt begins with a zero.
func (p *prefixes) session(tenant, name string) uint64 {
	var h maphash.Hash
	h.SetSeed(p.seed)
	h.WriteString(tenant)
	h.WriteString("\x00\x00")
	h.WriteString(name)
	return h.Sum64()
}
