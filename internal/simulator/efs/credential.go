package efs

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/berthhq/berth/internal/simulator"
)

// key is what requests are signed with. One with a token ends with it.
type key struct{ id, secret, token string }

// issue makes a key, which has a token where its life is bounded.
func (p *product) issue(prefix, token string) (key, error) {
	k := key{prefix + strings.ToUpper(simulator.Random()[:16]), simulator.Random(), token}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys[k.id] = k
	_, err := p.server.Secret(k.id, k.secret) // out of the log
	return k, err
}

// long is the file of a key that does not end.
func (p *product) long() (file string, err error) {
	k, err := p.issue("AKIA", "")
	if err != nil {
		return "", err
	}
	return p.server.Secret("credentials", fmt.Sprintf("# of the proxy\n[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n\n[other]\nregion = x", k.id, k.secret))
}

// Rotate puts a new key into the file; the old one is known no longer.
func Rotate(a *simulator.Server) error {
	p := a.Product().(*product)
	p.mu.Lock()
	clear(p.keys)
	p.mu.Unlock()
	_, err := p.long()
	return err
}

// temporary is a key as the services hand it out.
func (p *product) temporary(w http.ResponseWriter) {
	token, life := p.sessions.Issue()
	k, err := p.issue("ASIA", token)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	simulator.JSON(w, http.StatusOK, record{
		"Code": "Success", "Type": "AWS-HMAC", "LastUpdated": time.Now().UTC().Format(time.RFC3339),
		"AccessKeyId": k.id, "SecretAccessKey": k.secret, "Token": k.token, "Expiration": time.Now().Add(life).UTC().Format(time.RFC3339),
	})
}

const (
	roles = "/latest/meta-data/iam/security-credentials/"
	role  = "berth-proxy"
)

// metadataToken is what version 2 of the metadata service wants with every question.
func (p *product) metadataToken(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Aws-Ec2-Metadata-Token-Ttl-Seconds") == "" {
		http.Error(w, "", http.StatusBadRequest)
		return
	}
	token, _ := p.metadata.Issue()
	w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", r.Header.Get("X-Aws-Ec2-Metadata-Token-Ttl-Seconds"))
	_, _ = io.WriteString(w, token)
}

// instance reports whether the metadata service answers.
func (p *product) instance(w http.ResponseWriter, r *http.Request) bool {
	if !p.metadata.Valid(r.Header.Get("X-Aws-Ec2-Metadata-Token")) {
		http.Error(w, "", http.StatusUnauthorized)
		return false
	}
	return true
}

func (p *product) role(w http.ResponseWriter, r *http.Request) {
	if p.instance(w, r) {
		_, _ = io.WriteString(w, role)
	}
}

func (p *product) roleCredentials(w http.ResponseWriter, r *http.Request) {
	if p.instance(w, r) {
		p.temporary(w)
	}
}

func (p *product) containerCredentials(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != p.pod {
		simulator.JSON(w, http.StatusUnauthorized, record{"code": "Unauthorized", "message": "who is this?"})
		return
	}
	p.temporary(w)
}
