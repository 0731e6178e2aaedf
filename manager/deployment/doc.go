// Package deployment keeps models served: it stores deployments and their revisions, and, on the leader, starts,
// checks and ends the sessions that are their replicas. What happens next is decided by package rollout for the replicas and
// by package scale for their number; this package observes, stores the decisions and carries them out.
package deployment
