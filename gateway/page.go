package gateway

import (
	"bytes"
	"crypto/rand"
	_ "embed" // the page
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/berthhq/berth/internal/problem"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// page is a page of the gateway itself.
type page struct {
	Title, Text, Log string
	Wait             string // path that reports whether the app is ready; "": nothing to wait for
	Again            bool   // a retry can help
	Page             string // URL of Berth's page
	Nonce            string
}

// show writes a page. Its Content-Security-Policy permits only what the page contains.
func (g *Gateway) show(w http.ResponseWriter, status int, p page) {
	p.Nonce, p.Page = rand.Text(), g.cfg.PageURL
	var text bytes.Buffer
	if err := pageTemplate.Execute(&text, p); err != nil {
		g.log.Error("show page", "error", err)
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'nonce-"+p.Nonce+"'; script-src 'nonce-"+p.Nonce+"'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	w.WriteHeader(status)
	_, _ = w.Write(text.Bytes())
}

// waiting answers while an app starts: a user gets a page that reloads itself, and a program gets
// an error after a long wait.
func (g *Gateway) waiting(w http.ResponseWriter, r *http.Request, x *start) {
	if !navigates(r) {
		g.refuse(w, r, problem.Unavailable("the app is still starting").WithStatus(http.StatusGatewayTimeout).RetryAfter(time.Second))
		return
	}
	stage, _ := x.currentStage()
	at, _, _ := g.locate(r)
	g.show(w, http.StatusOK, page{Title: "The app is starting", Text: stage, Wait: strings.TrimSuffix(at.prefix, "/") + ownPaths + "wait"})
}

// await answers a request of the wait page when the stage has changed or after a time limit.
func (g *Gateway) await(w http.ResponseWriter, r *http.Request, at location, e *entry) {
	var said struct {
		Stage string `json:"stage"`
		Done  bool   `json:"done"`
	}
	if e.upstream() != nil {
		said.Done = true
	} else {
		x := g.begin(e, at)
		stage, changed := x.currentStage()
		timeout := time.NewTimer(awaitTime)
		defer timeout.Stop()
		if stage != r.URL.Query().Get("stage") {
			timeout.Reset(0)
		}
		select {
		case <-x.done:
		case <-changed:
		case <-timeout.C:
		case <-r.Context().Done():
			return
		}
		said.Done = x.over()
		said.Stage, _ = x.currentStage()
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(said)
}

// unusable answers a request if the app cannot be used.
func (g *Gateway) unusable(w http.ResponseWriter, r *http.Request, err error) {
	var f *failure
	switch {
	case errors.As(err, &f) && navigates(r):
		g.show(w, http.StatusServiceUnavailable, page{Title: f.Title + " cannot be opened", Text: f.Reason, Log: f.Log, Again: !f.gone})
	case errors.As(err, &f):
		g.refuse(w, r, problem.Unavailable("%s", f.Reason).Because(err))
	default:
		g.refuse(w, r, err)
	}
}

// refuse answers with an error: as a page for people, as problem JSON for programs.
func (g *Gateway) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p, known := problem.From(err)
	if !known {
		g.log.ErrorContext(r.Context(), "serve app", "host", r.Host, "error", err)
	}
	if !navigates(r) {
		problem.WriteHTTP(w, r, err)
		return
	}
	status := p.Status
	if status == 0 {
		status = problem.Status(p.Code)
	}
	if p.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(p.RetryAfter.Seconds())+1))
	}
	text := p.Message
	if p.Code == problem.CodeNotFound {
		text = "The app does not exist, or you have no access to it."
	}
	g.show(w, status, page{Title: "The app cannot be opened", Text: text, Again: status >= http.StatusInternalServerError})
}
