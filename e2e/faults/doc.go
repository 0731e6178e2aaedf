// Package faults kills and restarts parts of the platform under running sessions, and checks
// whether their owners notice. It has no code but tests.
package faults
