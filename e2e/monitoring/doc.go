// Package monitoring lets Debian's Prometheus scrape a running cluster, and checks the alerts and the dashboards of deploy/ with it.
// It contains only tests.
package monitoring
