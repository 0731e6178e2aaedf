// Package stories tests the scheduler as users see it, on a cluster of three agents and two
// managers: why sessions wait and what would help, that no session waits forever, and what happens
// to sessions when machines are drained or lost, or the leader changes. It contains only tests.
package stories
