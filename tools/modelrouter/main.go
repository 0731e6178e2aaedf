// Command modelrouter serves the router of models in front of engines, without a cluster: to try and to measure an
// engine. It prints a line for each request.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/gateway/inference"
	"github.com/berthhq/berth/internal/modelapi"
)

func main() {
	address := flag.String("listen", "127.0.0.1:8080", "address")
	name := flag.String("model", "", "name of the model, which the engines have too")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: modelrouter -model NAME [-listen ADDRESS] ENGINE-URL...")
		flag.PrintDefaults()
	}
	flag.Parse()
	m, err := models(*name, flag.Args())
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: *address, Handler: inference.New(inference.Config{Models: m}), ReadHeaderTimeout: 10 * time.Second}
	log.Printf("http://%s/v1 serves %q", *address, *name)
	log.Fatal(server.ListenAndServe())
}

// one gives every key access to the only model.
type one struct{ model *inference.Model }

func models(name string, engines []string) (one, error) {
	if name == "" || len(engines) == 0 {
		return one{}, errors.New("a model and at least one engine are needed, see -help")
	}
	m := one{inference.NewModel(name, nil)}
	var targets []inference.Target
	for i, engine := range engines {
		u, err := url.Parse(engine)
		if err != nil || u.Host == "" || u.Scheme != "http" {
			return m, fmt.Errorf("the engine %q is not an address such as http://127.0.0.1:8000", engine)
		}
		t := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 256}
		targets = append(targets, inference.Target{ID: fmt.Sprint("engine-", i), Weight: 1, Transport: to{u.Host, t}})
	}
	m.model.Update(targets...)
	return m, nil
}

// to is the transport to a host.
type to struct {
	host string
	next http.RoundTripper
}

func (t to) RoundTrip(r *http.Request) (*http.Response, error) {
	r.URL.Host = t.host
	return t.next.RoundTrip(r)
}

func (m one) Open(_ context.Context, _, model string, _ modelapi.API) (*inference.Access, error) {
	if model != m.model.Name {
		return nil, fmt.Errorf("the model %q does not exist, only %q: %w", model, m.model.Name, errdefs.ErrNotFound)
	}
	return &inference.Access{Model: m.model, Tenant: "one", Count: func(r inference.Record) { log.Print(line(r)) }}, nil
}

func (m one) Names(context.Context, string) ([]string, error) { return []string{m.model.Name}, nil }

// line describes a request.
func line(r inference.Record) string {
	text := fmt.Sprintf("%s status %d, tries %d, first byte %s, all %s", r.Replica, r.Status, r.Tries, round(r.FirstByte), round(r.Duration))
	if !r.Counted {
		return text + ", no usage reported"
	}
	text += fmt.Sprintf(", tokens %d + %d, cached %d", r.Usage.Prompt, r.Usage.Completion, r.Usage.Cached)
	if rest := (r.Duration - r.FirstByte).Seconds(); rest > 0.001 && r.Usage.Completion > 1 { // a stream
		text += fmt.Sprintf(", %.0f tokens/s", float64(r.Usage.Completion-1)/rest)
	}
	return text
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
