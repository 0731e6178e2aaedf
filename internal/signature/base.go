package signature

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/dunglas/httpsfv"
)

// base is the text that is signed (RFC 9421, 2.5): one line for each component, and the
// components and parameters themselves.
func base(r *http.Request, list httpsfv.InnerList) (string, error) {
	params, err := parameters(list)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, item := range list.Items {
		name, _ := item.Value.(string)
		value, err := component(r, name)
		if err != nil {
			return "", err
		}
		b.WriteString(`"` + name + `": ` + value + "\n")
	}
	b.WriteString(`"@signature-params": ` + params)
	return b.String(), nil
}

// parameters writes a list as Signature-Input has it after the label.
func parameters(list httpsfv.InnerList) (string, error) {
	d := httpsfv.NewDictionary()
	d.Add(label, list)
	text, err := httpsfv.Marshal(d)
	if err != nil {
		return "", malformed("%v", err)
	}
	return strings.TrimPrefix(text, label+"="), nil
}

// component is the value of a component (RFC 9421, 2.1 and 2.2).
func component(r *http.Request, name string) (string, error) {
	switch name {
	case "@method":
		return cmp.Or(r.Method, http.MethodGet), nil
	case "@authority":
		return authority(cmp.Or(r.Host, r.URL.Host)), nil
	case "@path":
		return cmp.Or(r.URL.EscapedPath(), "/"), nil
	case "@query":
		return "?" + r.URL.RawQuery, nil
	}
	values := r.Header.Values(name)
	if strings.HasPrefix(name, "@") || name != strings.ToLower(name) || len(values) == 0 {
		return "", malformed("the component %.40q is not supported or absent", name)
	}
	trimmed := make([]string, len(values))
	for i, v := range values {
		trimmed[i] = strings.TrimSpace(v)
	}
	return strings.Join(trimmed, ", "), nil
}

// authority has no port that a scheme implies: a server behind a proxy does not know
// the scheme.
func authority(host string) string {
	host = strings.ToLower(host)
	for _, port := range []string{":80", ":443"} {
		if cut, ok := strings.CutSuffix(host, port); ok && (!strings.Contains(cut, ":") || strings.HasSuffix(cut, "]")) {
			return cut
		}
	}
	return host
}
