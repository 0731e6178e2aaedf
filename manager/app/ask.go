package app

import (
	"html/template"
	"net/http"
	"net/url"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
)

// AskPath is the path at the API that redirects a browser to an app with a ticket. Gateways
// redirect users there who visit the address of an app. ?app= is the label and ?path= the path
// within the app.
const AskPath = "/apps/open"

// askPage reloads its own address. The second request comes from a page of this origin, so the
// browser sends the login cookie, which it withholds from requests that other sites start.
var askPage = template.Must(template.New("ask").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{.Title}}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
{{if .Next}}<meta http-equiv="refresh" content="0;url={{.Next}}">{{end}}</head>
<body><main><h1>{{.Title}}</h1>{{with .Text}}<p>{{.}}</p>{{end}}{{if .Next}}<p><a href="{{.Next}}">Continue</a></p>{{else}}<p><a href="/">Go to Berth</a></p>{{end}}</main></body></html>
`))

// Ask serves AskPath, with the viewer in the context of the request.
func (s *Service) Ask(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	q := r.URL.Query()
	again := q.Get("again") != ""
	q.Set("again", "1")
	next := AskPath + "?" + url.Values(q).Encode()
	if !again {
		s.page(w, http.StatusOK, "Opening the app", "", next)
		return
	}
	if v := viewer.From(r.Context()); v == nil || v.IsAnonymous() {
		http.Redirect(w, r, "/login?"+url.Values{"next": {next}}.Encode(), http.StatusSeeOther)
		return
	}
	t, ok := ParseLabel(q.Get("app"))
	if !ok {
		s.page(w, http.StatusNotFound, "The app cannot be opened", "The address is not that of an app.", "")
		return
	}
	got, err := s.Mint(r.Context(), t, q.Get("path"))
	if err != nil {
		p, known := problem.From(err)
		if !known {
			s.Logger.ErrorContext(r.Context(), "open app", "session", t.Session, "error", err)
		}
		text := p.Message
		if p.Code == problem.CodeNotFound {
			text = "The app does not exist, or you have no access to it."
		}
		s.page(w, problem.Status(p.Code), "The app cannot be opened", text, "")
		return
	}
	http.Redirect(w, r, got.URL, http.StatusSeeOther)
}

func (s *Service) page(w http.ResponseWriter, status int, title, text, next string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = askPage.Execute(w, map[string]string{"Title": title, "Text": text, "Next": next})
}
