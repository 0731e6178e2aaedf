// Package e2e plays the use of the platform by people, and checks the results. Every scenario runs
// against the real server over its public API, most of them with the real command line. It has no
// code but tests.
package e2e
