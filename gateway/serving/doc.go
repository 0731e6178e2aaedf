// Package serving is the part of a gateway that serves models: it checks the keys of requests and their limits, reads
// from the database which replicas a deployment has, and reports the load. Package inference, which it configures,
// routes the requests.
package serving
