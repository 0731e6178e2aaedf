package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/registry/pushtoken"
	"github.com/berthhq/berth/internal/registry/store"
)

// sweepPath is a path that no repository can have.
const sweepPath = "/v2/_berth/sweep"

// maxOptions limits the options of a sweep in bytes: they name the images that managers need.
const maxOptions = 64 << 20

// sweep runs a sweep for a manager and answers with its report.
func (r *Registry) sweep(w http.ResponseWriter, req *http.Request, g pushtoken.Grant) {
	if !g.Maintain || req.Method != http.MethodPost {
		deny(w, http.StatusForbidden, "DENIED", "the push token does not permit sweeps")
		return
	}
	var o store.Options
	if err := json.NewDecoder(http.MaxBytesReader(w, req.Body, maxOptions)).Decode(&o); err != nil {
		deny(w, http.StatusBadRequest, "UNKNOWN", fmt.Sprintf("read the options of a sweep: %v", err))
		return
	}
	// The answer begins at once, because a sweep can take longer than clients wait for it.
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	done, err := r.store.Sweep(req.Context(), o)
	out := SweepAnswer{Report: done}
	if err != nil {
		out.Error = err.Error()
		r.log.Warn("sweep the registry", "error", err)
	}
	_ = json.NewEncoder(w).Encode(out)
}

// SweepAnswer is the result of a sweep.
type SweepAnswer struct {
	store.Report
	Error string `json:"error,omitempty"`
}

// Sweep asks the embedded registry at a host for a sweep. The token permits maintenance.
func Sweep(ctx context.Context, base, token string, o store.Options) (store.Report, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return store.Report{}, fmt.Errorf("encode the options of a sweep: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+sweepPath, bytes.NewReader(body))
	if err != nil {
		return store.Report{}, fmt.Errorf("ask for a sweep: %w", err)
	}
	req.SetBasicAuth(pushtoken.User, token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return store.Report{}, fmt.Errorf("ask for a sweep: %w: %w", errdefs.ErrUnavailable, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	switch {
	case res.StatusCode == http.StatusNotFound, res.StatusCode == http.StatusMethodNotAllowed, res.StatusCode == http.StatusUnauthorized, res.StatusCode == http.StatusForbidden:
		return store.Report{}, fmt.Errorf("the registry refuses to sweep (%s): it is not the registry of berthd up, or has another key: %w", res.Status, errdefs.ErrFailedPrecondition)
	case err != nil || res.StatusCode != http.StatusOK:
		return store.Report{}, fmt.Errorf("the registry answers %s: %w: %w", res.Status, errdefs.ErrUnavailable, err)
	}
	var out SweepAnswer
	if err := json.Unmarshal(text, &out); err != nil { // the registry ended in the middle
		return store.Report{}, fmt.Errorf("read the report of a sweep: %w: %w", errdefs.ErrUnavailable, err)
	}
	if out.Error != "" {
		return out.Report, fmt.Errorf("%s: %w", out.Error, errdefs.ErrUnavailable)
	}
	return out.Report, nil
}

// maxAnswer limits the report of a sweep in bytes.
const maxAnswer = 1 << 20
