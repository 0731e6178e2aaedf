// Package compare has the benchmarks of the router beside nginx, HAProxy and the proxy of LiteLLM, all in front of
// the same engine of tests. `make bench-gateways` installs them; those that are missing are skipped.
package compare
