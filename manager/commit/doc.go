// Package commit makes images of running sessions: a task asks the agent of the session's main
// container for an image, verifies what the agent sent to the registry, and then records the image.
package commit
