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

// JSON answers with a value.
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

// Decode reads a request's body strictly: a field that the product does not have is
// an error, which names it, so that a plugin's mistake is found here and not on
// the first real array.
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

// Query refuses parameters that the product does not have.
func Query(q url.Values, known ...string) error {
	for name := range q {
		if !slices.Contains(known, name) {
			return fmt.Errorf("parameter %q is unknown; there are %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// Page is a part of all that has at most n records, or the array's page size; next
// is where the following one begins, 0 when there is none.
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

// Basic reports whether a request names the array's user and password.
func (a *Server) Basic(r *http.Request) bool {
	user, password, ok := r.BasicAuth()
	return ok && a.Login(user, password)
}

// Login reports whether someone is the array's user.
func (a *Server) Login(user, password string) bool { return user == a.User && password == a.Password }
