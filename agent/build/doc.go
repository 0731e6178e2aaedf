// Package build builds images of Dockerfiles. A builder is a process of its own, beside the agent, in
// the cgroup of the session that the build belongs to; see package builder. This package has the messages
// between the two, and starts builders.
package build
