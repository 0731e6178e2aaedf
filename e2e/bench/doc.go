// Package bench measures the platform beside bare engines in the same run, for
// make bench: ratios, never a pass or fail. See docs/benchmarks.md.
package bench
