// Package builder is the process that builds one image with BuildKit. Its files, its steps and its
// memory belong to the sandbox of the build: steps run in the network namespace and below the cgroup of
// a session, under the rules of package sandbox, and all files are in the cache directory of one project.
// Only cmd/berth-builder imports this package, so that BuildKit is in no other program.
package builder
