// Package stories shows, on a cluster of three agents and two managers, what people
// see of the scheduler: why they wait and what would help, that no one waits for
// ever, and what becomes of sessions when machines are emptied, lost, or stop to
// lead. It has no code but tests.
package stories
