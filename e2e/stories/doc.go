// Package stories checks, on a cluster of three agents and two managers, what people see of the
// scheduler: why sessions wait and what would help, that no session waits forever, and what happens
// to sessions when machines are drained or lost, or the leader changes. It has no code but tests.
package stories
