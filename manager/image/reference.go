package image

import (
	"regexp"
	"strings"

	"github.com/berthhq/berth/internal/problem"
)

// reference is a parsed image name: host/path:tag@digest.
type reference struct {
	host   string // "" if the name begins with the path
	path   string
	tag    string
	digest string // "" if none is required
}

// Limits of the OCI distribution specification.
var (
	pathRule   = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	tagRule    = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$`)
	digestRule = regexp.MustCompile(`^sha256:[a-f0-9]{64}$`)
)

const (
	maxReference = 512
	maxPath      = 255
	latest       = "latest" // the default tag
)

// parse parses python, python:3.11, lab/python:3.11, host:5000/python:3.11, each also with
// @sha256:…. field is the input's field, for errors.
func parse(field, s string) (reference, error) {
	if s == "" {
		return reference{}, problem.Invalid(field, "must not be empty")
	}
	if len(s) > maxReference {
		return reference{}, problem.Invalid(field, "is too long").WithLimit("512")
	}
	var r reference
	rest, digest, pinned := strings.Cut(s, "@")
	if pinned && !digestRule.MatchString(digest) {
		return reference{}, problem.Invalid(field, "has a digest that is not sha256: and 64 hexadecimal digits")
	}
	r.digest = digest
	if first, path, ok := strings.Cut(rest, "/"); ok && (strings.ContainsAny(first, ".:") || first == "localhost") {
		host, err := canonicalHost(first)
		if err != nil {
			return reference{}, problem.Invalid(field, "names a registry that is not a host name or host:port")
		}
		r.host, rest = host, path
	}
	path, tag, tagged := strings.Cut(rest, ":")
	if !tagged {
		tag = latest
	}
	r.path, r.tag = path, tag
	if r.host == dockerHub && !strings.Contains(path, "/") {
		r.path = "library/" + path
	}
	if len(r.path) > maxPath || !pathRule.MatchString(r.path) {
		return reference{}, problem.Invalid(field, "is not the name of an image such as python:3.11")
	}
	if !tagRule.MatchString(r.tag) {
		return reference{}, problem.Invalid(field, "has an invalid tag")
	}
	return r, nil
}

// name returns the short form, which users and registries use.
func (r reference) name() string { return r.path + ":" + r.tag }

// full returns the unique form.
func (r reference) full() string { return r.host + "/" + r.name() }
