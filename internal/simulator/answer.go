package simulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// JSON sends a value as the response.
func JSON(w http.ResponseWriter, status int, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(raw)
}

// Decode decodes a request's body strictly. It returns an error for a field that the product does
// not have, so that a plugin's mistake is found before it meets a real product.
func Decode(r *http.Request, into any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("body: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("body: text after the value")
	}
	return nil
}

// Query returns an error for parameters that the product does not have.
func Query(q url.Values, known ...string) error {
	for name := range q {
		if !slices.Contains(known, name) {
			return fmt.Errorf("parameter %q is unknown; there are %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// Page returns the part of all that begins at from, with at most n records and at most the page
// size. next is the start of the following page, or 0.
func Page[T any](a *Server, all []T, from, n int) (page []T, next int) {
	if n <= 0 || n > a.options.PageSize {
		n = a.options.PageSize
	}
	from = min(max(from, 0), len(all))
	end := min(from+n, len(all))
	if end < len(all) {
		next = end
	}
	return all[from:end], next
}

// Basic reports whether a request has the simulator's user and password.
func (a *Server) Basic(r *http.Request) bool {
	user, password, ok := r.BasicAuth()
	return ok && a.Login(user, password)
}

// Login reports whether these are the simulator's user and password.
func (a *Server) Login(user, password string) bool { return user == a.User && password == a.Password }
