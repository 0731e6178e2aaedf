// Package e2e tells what people do with the platform, and checks that it comes
// out as promised. Every scenario runs against the real server over its public
// API, most of them with the real command line. It has no code but tests.
package e2e
