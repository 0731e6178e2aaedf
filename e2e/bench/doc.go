// Package bench measures the platform and bare engines in the same run, for make bench: it prints
// ratios, and never passes or fails. See docs/benchmarks.md.
package bench
