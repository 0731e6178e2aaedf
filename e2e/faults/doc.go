// Package faults kills and restarts parts of the platform while sessions run, and checks the effect
// on the sessions. It contains only tests.
package faults
