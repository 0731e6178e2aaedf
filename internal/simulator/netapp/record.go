package netapp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/berthhq/berth/internal/simulator"
)

// record is an entry of an answer.
type record = map[string]any

// field finds a value by its name with dots.
func field(r record, name string) (any, bool) {
	first, rest, more := strings.Cut(name, ".")
	v, ok := r[first]
	if !ok || !more {
		return v, ok
	}
	inner, ok := v.(record)
	if !ok {
		return nil, false
	}
	return field(inner, rest)
}

// paging are the parameters that every list takes.
var paging = []string{"fields", "max_records", "return_records", "return_timeout", "order_by", "start"}

// list answers with the records that the query asks for, page by page. Parameters that name fields
// select by their values; a name that no record can have is an error. always are the fields that
// are always in the answer.
func (p *product) list(w http.ResponseWriter, r *http.Request, all []record, fields, always []string) {
	q := r.URL.Query()
	var found []record
	for name := range q {
		if !slices.Contains(paging, name) && !slices.Contains(fields, name) {
			refuse(w, fail(http.StatusBadRequest, codeArgument, "Unexpected argument %q.", name))
			return
		}
	}
	for _, one := range all {
		if matches(one, q) {
			found = append(found, one)
		}
	}
	most, _ := strconv.Atoi(q.Get("max_records"))
	from, _ := strconv.Atoi(q.Get("start"))
	page, next := simulator.Page(p.server, found, from, most)
	out := record{"num_records": len(page)}
	records := make([]record, 0, len(page))
	for _, one := range page {
		picked, err := pick(one, q.Get("fields"), always)
		if err != nil {
			refuse(w, err)
			return
		}
		records = append(records, picked)
	}
	out["records"] = records
	if next > 0 {
		q.Set("start", strconv.Itoa(next))
		out["_links"] = record{"next": record{"href": r.URL.Path + "?" + q.Encode()}}
	}
	simulator.JSON(w, http.StatusOK, out)
}

func matches(one record, q url.Values) bool {
	for name, values := range q {
		if slices.Contains(paging, name) {
			continue
		}
		v, ok := field(one, name)
		if !ok || fmt.Sprint(v) != values[0] {
			return false
		}
	}
	return true
}

// pick returns the requested fields: a field, all fields below it, or "*".
func pick(one record, fields string, always []string) (record, *failure) {
	out := record{}
	names := slices.Clone(always)
	if fields != "" {
		names = append(names, strings.Split(fields, ",")...)
	}
	for _, name := range names {
		if name == "*" {
			return one, nil
		}
		if v, ok := field(one, name); ok {
			put(out, name, v)
		} else if !known(one, name) {
			return nil, fail(http.StatusBadRequest, codeArgument, "The value %q is invalid for field \"fields\".", name)
		}
	}
	return out, nil
}

// known reports whether a record has fields below the beginning of a name. A rule without limits
// has no field space.
func known(one record, name string) bool {
	first, _, _ := strings.Cut(name, ".")
	_, ok := one[first]
	return ok || first == "space" || first == "files"
}

func put(r record, name string, v any) {
	first, rest, more := strings.Cut(name, ".")
	if !more {
		r[first] = v
		return
	}
	inner, ok := r[first].(record)
	if !ok {
		inner = record{}
		r[first] = inner
	}
	put(inner, rest, v)
}

// one answers with a single record.
func (p *product) one(w http.ResponseWriter, r *http.Request, v record) {
	if err := simulator.Query(r.URL.Query(), "fields"); err != nil {
		refuse(w, fail(http.StatusBadRequest, codeArgument, "Unexpected argument: %v", err))
		return
	}
	simulator.JSON(w, http.StatusOK, v)
}

// body reads a request strictly.
func body(r *http.Request, into any) *failure {
	if err := simulator.Query(r.URL.Query(), "return_timeout", "return_records"); err != nil {
		return fail(http.StatusBadRequest, codeArgument, "Unexpected argument: %v", err)
	}
	if err := simulator.Decode(r, into); err != nil {
		return fail(http.StatusBadRequest, codeArgument, "Unexpected argument: %v", err)
	}
	return nil
}

// reference names something by uuid or name.
type reference struct {
	UUID string `json:"uuid"`
	Name string `json:"name"`
}

// is reports whether a reference is to the object. It must have a UUID or a name.
func (r reference) is(uuid, name string) bool {
	return (r.UUID != "" || r.Name != "") && (r.UUID == "" || r.UUID == uuid) && (r.Name == "" || r.Name == name)
}

// place is the volume in a request.
func (p *product) place(svm, volume reference) *failure {
	if !svm.is(p.svm, svmName) || !volume.is(p.volume, volumeName) {
		raw, _ := json.Marshal([]reference{svm, volume})
		return fail(http.StatusNotFound, codeAbsent, "entry doesn't exist: %s", raw)
	}
	return nil
}
