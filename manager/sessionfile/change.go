package sessionfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/berthhq/berth/internal/containerfile"
	"github.com/berthhq/berth/internal/problem"
)

// Changes is the body of a change.
type Changes struct {
	Paths     []string             `json:"paths"`     // of directories to make, and of entries to delete
	Items     []containerfile.Item `json:"items"`     // of moves
	Overwrite bool                 `json:"overwrite"` // of moves: replaces files, never directories
	Recursive bool                 `json:"recursive"` // of deletions: directories with their contents
}

// Result is the outcome for one path. Code and Error are empty if it was done.
type Result struct {
	Path  string `json:"path"`
	Code  string `json:"code,omitempty"`
	Error string `json:"error,omitempty"`
}

// Results is the answer to a change, in the order of the request.
type Results struct {
	Results []Result `json:"results"`
}

// kind of a change: turns a body into a request.
type kind func(in Changes) (containerfile.Request, error)

func directories(in Changes) (containerfile.Request, error) {
	q := containerfile.Request{Op: containerfile.Mkdir, Paths: in.Paths}
	return q, checkAll(in.Paths, checkNew)
}

func deletions(in Changes) (containerfile.Request, error) {
	q := containerfile.Request{Op: containerfile.Remove, Paths: in.Paths, Recursive: in.Recursive}
	return q, checkAll(in.Paths, func(field, p string) error {
		if p == "" {
			return problem.Invalid(field, "is empty")
		}
		return checkPath(field, p)
	})
}

func checkAll(paths []string, check func(field, p string) error) error {
	if len(paths) == 0 || len(paths) > containerfile.MaxPaths {
		return problem.Invalid("paths", "has %d paths", len(paths)).WithLimit(fmt.Sprintf("1..%d", containerfile.MaxPaths))
	}
	for i, p := range paths {
		if err := check(fmt.Sprintf("paths[%d]", i), p); err != nil {
			return err
		}
	}
	return nil
}

func moves(in Changes) (containerfile.Request, error) {
	q := containerfile.Request{Op: containerfile.Move, Items: in.Items, Overwrite: in.Overwrite}
	if len(in.Items) == 0 || len(in.Items) > containerfile.MaxPaths {
		return q, problem.Invalid("items", "has %d items", len(in.Items)).WithLimit(fmt.Sprintf("1..%d", containerfile.MaxPaths))
	}
	for i, item := range in.Items {
		if err := checkPath(fmt.Sprintf("items[%d].from", i), item.From); err != nil {
			return q, err
		}
		if err := checkNew(fmt.Sprintf("items[%d].to", i), item.To); err != nil {
			return q, err
		}
	}
	return q, nil
}

// change changes files, and records the change before and, with the result, after it.
func change(of kind) action {
	return func(v *fileRequest) error {
		q, err := changesOf(v, of)
		if err != nil {
			return err
		}
		begun, e := time.Now(), v.entry
		e.Message = summary(q)
		row, err := v.h.Audit.Begin(v.r.Context(), e)
		if err != nil {
			return err
		}
		results, err := v.results(q)
		e.Duration = time.Since(begun)
		first := err
		for i := 0; first == nil && i < len(results); i++ {
			first = results[i].err
		}
		if first != nil {
			said := e.Message
			e = e.Failed(first)
			e.Message = said + ": " + e.Message
		}
		row.End(v.r.Context(), e)
		if err != nil {
			return err
		}
		out := Results{Results: make([]Result, len(results))}
		for i, r := range results {
			out.Results[i] = r.Result
		}
		return v.answer(out)
	}
}

func changesOf(v *fileRequest, of kind) (containerfile.Request, error) {
	d := json.NewDecoder(http.MaxBytesReader(v.w, v.r.Body, maxBody))
	d.DisallowUnknownFields()
	var in Changes
	err := d.Decode(&in)
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		return containerfile.Request{}, problem.TooLarge("body", maxBody)
	case err != nil:
		return containerfile.Request{}, problem.Invalid("body", "is not the JSON of a change: %s", clean(err.Error()))
	}
	if _, err := d.Token(); err != io.EOF {
		return containerfile.Request{}, problem.Invalid("body", "has data behind the JSON")
	}
	return of(in)
}

// summary describes a change for the audit log.
func summary(q containerfile.Request) string {
	n, text := len(q.Paths), ""
	if q.Op == containerfile.Move {
		n = len(q.Items)
		text = fmt.Sprintf("%.150q to %.150q", q.Items[0].From, q.Items[0].To)
	} else {
		text = fmt.Sprintf("%.300q", q.Paths[0])
	}
	if n > 1 {
		text += fmt.Sprintf(" and %d more", n-1)
	}
	return text
}

// outcome is a result with its error.
type outcome struct {
	Result
	err error
}

func (v *fileRequest) results(q containerfile.Request) ([]outcome, error) {
	c, a, err := v.send(q)
	if err != nil {
		return nil, err
	}
	v.h.pool.put(c)
	if len(a.Results) != max(len(q.Paths), len(q.Items)) {
		return nil, broken()
	}
	v.used.Moved()
	out := make([]outcome, len(a.Results))
	for i, r := range a.Results {
		out[i].Path = r.Path
		if r.Failure == nil {
			continue
		}
		out[i].err = refused(r.Failure)
		p, _ := problem.From(out[i].err)
		out[i].Code, out[i].Error = p.Code, p.Message
	}
	return out, nil
}
