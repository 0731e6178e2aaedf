package image

import (
	"encoding/json"
	"fmt"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/seal"
)

// RegistryMirrorInput describes a mirror. Credentials that are nil stay as a mirror of this host has them.
type RegistryMirrorInput struct {
	Host      string
	PlainHTTP *bool
	Username  *string
	Password  *string
}

// maxMirrors limits the mirrors of a registry: an agent asks one after the other.
const maxMirrors = 8

// mirrorLogin has the credentials of a mirror.
type mirrorLogin struct{ Username, Password string }

func checkMirrors(list []RegistryMirrorInput) error {
	if len(list) > maxMirrors {
		return problem.Invalid("mirrors", "has %d entries, more than %d", len(list), maxMirrors).WithLimit(fmt.Sprint(maxMirrors))
	}
	seen := map[string]bool{}
	for _, m := range list {
		host, err := canonicalHost(m.Host)
		if err != nil {
			return problem.Invalid("mirrors", "%.80q is not a host name or host:port", m.Host)
		}
		if seen[host] {
			return problem.Invalid("mirrors", "%s is in the list twice", host)
		}
		seen[host] = true
		if (m.Username == nil) != (m.Password == nil) {
			return problem.Invalid("mirrors", "%s has a user name or a password, but not both", host)
		}
		if err := checkCredentials(m.Username, m.Password); err != nil {
			return problem.Within(err, "mirrors")
		}
	}
	return nil
}

// setMirrors replaces the mirrors of a registry; old is nil for a new one.
func (s *Service) setMirrors(m *ent.RegistryMutation, old *ent.Registry, list []RegistryMirrorInput) error {
	if list == nil {
		return nil
	}
	has := map[string]mirrorLogin{}
	if old != nil {
		var err error
		if has, err = s.mirrorLogins(old); err != nil {
			return err
		}
	}
	mirrors, logins := make([]report.Mirror, 0, len(list)), map[string]mirrorLogin{}
	for _, in := range list {
		host, err := canonicalHost(in.Host)
		if err != nil {
			return err
		}
		login := has[host]
		if in.Username != nil {
			login = mirrorLogin{*in.Username, *in.Password}
		}
		if login != (mirrorLogin{}) {
			logins[host] = login
		}
		mirrors = append(mirrors, report.Mirror{Host: host, PlainHTTP: in.PlainHTTP != nil && *in.PlainHTTP, Login: login != (mirrorLogin{})})
	}
	m.SetMirrors(mirrors)
	if len(logins) == 0 {
		if old != nil {
			m.ClearMirrorsSealed()
		}
		return nil
	}
	text, err := json.Marshal(logins)
	if err != nil {
		return fmt.Errorf("encode the logins of mirrors: %w", err)
	}
	m.SetMirrorsSealed(s.keys.Seal(seal.MirrorLogins, text))
	return nil
}

// mirrorLogins returns the credentials of mirrors by their hosts.
func (s *Service) mirrorLogins(r *ent.Registry) (map[string]mirrorLogin, error) {
	out := map[string]mirrorLogin{}
	if len(r.MirrorsSealed) == 0 {
		return out, nil
	}
	text, err := s.keys.Open(seal.MirrorLogins, r.MirrorsSealed)
	if err != nil {
		return nil, fmt.Errorf("logins of the mirrors of registry %s: %w", r.Name, err)
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("logins of the mirrors of registry %s: %w", r.Name, err)
	}
	return out, nil
}

// mirrors returns the mirrors that agents ask for the content of images.
func (s *Service) mirrors(r *ent.Registry) ([]*agentpb.Mirror, error) {
	if len(r.Mirrors) == 0 {
		return nil, nil
	}
	logins, err := s.mirrorLogins(r)
	if err != nil {
		return nil, err
	}
	out := make([]*agentpb.Mirror, 0, len(r.Mirrors))
	for _, m := range r.Mirrors {
		login := logins[m.Host]
		out = append(out, &agentpb.Mirror{Host: m.Host, PlainHttp: m.PlainHTTP, Username: login.Username, Password: login.Password})
	}
	return out, nil
}
