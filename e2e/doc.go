// Package e2e contains end-to-end tests. Every scenario runs against the real server over its
// public API, most of them with the real command line. It contains only tests.
package e2e
