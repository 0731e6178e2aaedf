// Package clients has the test of the router with OpenAI's own clients in Python, from npm and in Go. Its programs
// are below testdata, and `make openai-clients` installs the packages that they need.
package clients
