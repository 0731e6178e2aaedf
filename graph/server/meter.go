package server

import (
	"context"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/berthhq/berth/internal/problem"
)

// Meter measures operations by type and result. Clients choose the names of operations, so
// these are not labels.
type Meter struct {
	answers *prometheus.CounterVec
	seconds *prometheus.HistogramVec
	open    prometheus.Gauge
}

// operationTypes are the values of the label operation; unread stands for text that is not an
// operation.
var operationTypes = []string{string(ast.Query), string(ast.Mutation), string(ast.Subscription), unread}

const (
	unread   = "unread"
	answered = "OK"
)

// NewMeter registers the metrics, unless the registerer is nil.
func NewMeter(to prometheus.Registerer) *Meter {
	f := promauto.With(to)
	m := &Meter{
		answers: f.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_graphql_requests_total", Help: "GraphQL operations by type and code of the first error. A subscription counts when it begins.",
		}, []string{"operation", "code"}),
		seconds: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "berth_graphql_request_seconds", Help: "Time to answer queries and mutations.",
			Buckets: []float64{.001, .005, .02, .1, .5, 2, 10, 60},
		}, []string{"operation"}),
		open: f.NewGauge(prometheus.GaugeOpts{Name: "berth_graphql_subscriptions", Help: "Subscriptions that are open."}),
	}
	for _, kind := range operationTypes {
		m.answers.WithLabelValues(kind, answered).Add(0)
	}
	for _, kind := range []ast.Operation{ast.Query, ast.Mutation} {
		m.seconds.WithLabelValues(string(kind))
	}
	return m
}

// response measures operations with a single answer.
func (m *Meter) response(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	begun := time.Now()
	resp := next(ctx)
	kind := unread
	if rc := graphql.GetOperationContext(ctx); rc.Operation != nil {
		kind = string(rc.Operation.Operation)
	}
	if kind == string(ast.Subscription) || resp == nil {
		return resp
	}
	m.count(kind, resp.Errors)
	if kind != unread {
		m.seconds.WithLabelValues(kind).Observe(time.Since(begun).Seconds())
	}
	return resp
}

// subscribed counts a subscription until ctx ends, or its rejection.
func (m *Meter) subscribed(ctx context.Context, errs gqlerror.List) {
	m.count(string(ast.Subscription), errs)
	if len(errs) == 0 {
		m.open.Inc()
		context.AfterFunc(ctx, m.open.Dec)
	}
}

func (m *Meter) count(kind string, errs gqlerror.List) {
	code := answered
	if len(errs) > 0 {
		if code = codeOf(errs[0]); !problem.Known(code) {
			code = problem.CodeInternal
		}
	}
	m.answers.WithLabelValues(kind, code).Inc()
}
