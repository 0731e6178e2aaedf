// Package scale decides how many replicas a deployment wants, from what its replicas and the router
// measured. Decide is a pure function of the rules, the stored state and the present values, so that
// every decision can be repeated and explained; package rollout carries the number out.
package scale
