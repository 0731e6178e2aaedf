package clitest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// A domain, and IDs of users and of a task.
const (
	DomainVision = `{"id":"01900000-0000-7000-8000-000000000001","name":"vision"}`
	IDKim        = "01900000-0000-7000-8000-000000000002"
	IDLee        = "01900000-0000-7000-8000-000000000003"
	IDTask       = "01900000-0000-7000-8000-000000000004"
)

// Edges is a page of a list with these nodes.
func Edges(nodes ...string) string {
	for i, n := range nodes {
		nodes[i] = `{"node":` + n + `}`
	}
	return `{"edges":[` + strings.Join(nodes, ",") + `],"pageInfo":{"hasNextPage":false}}`
}

// User returns a user in the form of the API.
func User(id, email, status string) string {
	return fmt.Sprintf(`{"id":%q,"email":%q,"username":%q,"status":%q,"domain":{}}`, id, email, email[:3], status)
}

// Record stores the variables of each operation.
func Record(f *Server, answers map[string]string) map[string]string {
	said := map[string]string{}
	for op, answer := range answers {
		f.Answer[op] = func(vars json.RawMessage) string { said[op] = string(vars); return answer }
	}
	return said
}
