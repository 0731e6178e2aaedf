package targets

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/prometheus/common/expfmt"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/requestid"
)

// maxText limits the metrics of one target.
const maxText = 64 << 20

// read answers with the metrics of one target. A target that does not answer is an error, so that Prometheus shows it as down.
func (s *Service) read(w http.ResponseWriter, r *http.Request) {
	role, name := r.PathValue("role"), r.PathValue("name")
	if role == Manager && name == s.Own {
		s.OwnMetrics.ServeHTTP(w, r)
		return
	}
	select {
	case s.reads <- struct{}{}:
		defer func() { <-s.reads }()
	default:
		s.fail(w, r, "read metrics", problem.Unavailable("this manager already reads the metrics of %d targets", maxReads))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readTime)
	defer cancel()
	packed, err := s.metrics(ctx, role, name)
	if err != nil {
		s.fail(w, r, "read metrics of "+role+" "+name, err)
		return
	}
	s.write(w, r, packed)
}

// metrics reads the metrics of a target. A name that is not one of the cluster's is not found: the caller cannot choose an address.
func (s *Service) metrics(ctx context.Context, role, name string) ([]byte, error) {
	var live []string
	switch role {
	case Agent, Storage:
		p, ok := s.Peer(role, name)
		if !ok {
			return nil, problem.Unavailable("%s %s is not connected to this manager", role, name)
		}
		return reached(p.Metrics(ctx))
	case Manager:
		live = s.Managers()
	case Gateway:
		live = s.Gateways()
	default:
		return nil, problem.NotFound("role")
	}
	if !slices.Contains(live, name) {
		return nil, problem.NotFound(role)
	}
	return reached(s.Read(ctx, name))
}

// reached replaces errors of the connection to a target.
func reached(packed []byte, err error) ([]byte, error) {
	switch {
	case err == nil:
		return packed, nil
	case errdefs.IsNotImplemented(err):
		return nil, problem.Unavailable("the version of this target does not show its metrics to managers").Because(err)
	}
	return nil, problem.Unavailable("the target does not answer").Because(err)
}

func (s *Service) write(w http.ResponseWriter, r *http.Request, packed []byte) {
	w.Header().Set("Content-Type", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
	w.Header().Add("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed)
		return
	}
	text, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		s.fail(w, r, "read metrics", err)
		return
	}
	_, _ = io.Copy(w, io.LimitReader(text, maxText))
}

func (s *Service) fail(w http.ResponseWriter, r *http.Request, doing string, err error) {
	if !problem.WriteHTTP(w, r, err) {
		s.Logger.ErrorContext(r.Context(), doing, "request", requestid.From(r.Context()), "error", err)
	}
}
