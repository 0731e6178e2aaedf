// Package build builds images. A build is a session with the base image, whose container only waits, and a task:
// once the session runs, the task lets its agent build in the limits and the network of the session, records the
// image as package commit does, and ends the session.
package build
